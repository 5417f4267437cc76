"""The Compare and Claims tabs in a browser, over the fake session."""

import pytest
from launch import served, visiting
from playwright.sync_api import expect
from results_samples import sample_results

from engine.resultsfile import dump_results, parse_results

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession") as address:
        yield address


@pytest.fixture
def visit(browser, url):
    with visiting(browser, url) as opened:
        open_tab(opened.page, "Compare")
        yield opened
        assert opened.problems == []


def open_tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()
    if name == "Compare":
        page.locator("#compare-pareto .js-plotly-plot .main-svg").first.wait_for()
        page.locator("#compare-table tbody tr").first.wait_for()
    else:
        page.locator("#claims-view .fs-claim").first.wait_for()


def choose_set(page, number):
    page.locator("#compare-set input").click()
    page.get_by_role("option").nth(number).click()


def test_opens_with_pictures_numbers_and_where_they_come_from(visit):
    page = visit.page
    assert page.locator("#compare-banner .fs-badge-replay").inner_text().strip() == "REPLAY"
    assert "n = 60" in page.locator("#compare-banner").inner_text()
    expect(page.locator("#compare-pareto .annotation-text")).to_have_count(page.locator("#compare-methods input:checked").count())
    expect(page.locator("#compare-break-even .js-plotly-plot")).to_have_count(1)
    assert "Pays from use 2: " in page.locator("#compare-break-even-note").inner_text()
    assert "40 % less" in page.locator("#compare-equal").inner_text()
    assert "python -m engine.bench fuse" in page.locator("#compare-note").inner_text()


def test_metric_methods_and_log_axis_change_picture_and_table(visit):
    page = visit.page
    page.locator("#compare-metric input").click()
    page.get_by_role("option", name="F1", exact=True).click()
    page.locator("#compare-table thead").get_by_text("F1").wait_for()
    page.locator("#compare-pareto .ytitle").get_by_text("F1 (higher is better)").wait_for()
    page.locator("#compare-all").click()
    page.wait_for_function("document.querySelectorAll('#compare-table tbody tr').length === 73")
    page.locator("#compare-papers").click()
    page.wait_for_function("document.querySelectorAll('#compare-pareto .annotation-text').length === 9")
    page.locator("#compare-log input").check()
    page.locator("#compare-pareto .xtitle").get_by_text("(log)").wait_for()


def test_columns_sort_by_keyboard_and_say_so(visit):
    page = visit.page
    head = page.locator("#compare-table thead th").nth(2)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.locator("#compare-table tbody th").first.inner_text() == "Direct reuse"
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert page.locator("#compare-table tbody th").first.inner_text() == "Full prefill"


def test_the_papers_figure_stands_beside_ours_and_ours_keeps_its_width(visit):
    page = visit.page
    assert page.locator("#compare-published-plot").count() == 0 or not page.locator("#compare-published-plot").is_visible()
    page.locator("#compare-published input").check()
    page.locator("#compare-published-plot .js-plotly-plot .main-svg").first.wait_for()
    assert "Published, not measured here" in page.content()
    frame = "document.querySelector('#compare-pareto')"
    page.wait_for_function(f"{frame}.querySelector('.main-svg')?.clientWidth <= {frame}.clientWidth")
    page.locator("#compare-published input").uncheck()
    page.locator("#compare-published-plot").wait_for(state="hidden")


def test_downloads_hold_the_set(visit, tmp_path):
    page = visit.page
    for name in ("csv", "json"):
        with page.expect_download() as download:
            page.locator(f"#compare-{name}").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.name.startswith("fusescope-results-two-hop") and path.suffix == f".{name}"
    assert parse_results(path.read_bytes(), "fuse-two-hop") == sample_results()


def test_a_file_opens_and_a_bad_one_is_a_sentence(visit, tmp_path):
    page = visit.page
    good, bad = tmp_path / "mine.json", tmp_path / "bad.json"
    good.write_bytes(dump_results(sample_results("hotpotqa", 500)))
    bad.write_bytes(b"{")
    chooser = page.locator("#compare-open input[type=file], input[type=file][accept*=json]").last
    chooser.set_input_files(good)
    page.locator("#compare-banner").get_by_text("n = 500").wait_for()
    assert "The results of the file are shown." in page.locator("#compare-status").inner_text()
    chooser.set_input_files(bad)
    page.locator("#compare-status .fs-status-error").wait_for()
    assert "n = 500" in page.locator("#compare-banner").inner_text()
    open_tab(page, "Claims")
    assert "hotpotqa · n = 500" in page.locator("#claims-view").inner_text()


def test_a_row_of_a_set_without_runs_offers_none(visit):
    page = visit.page
    expect(page.locator("#compare-table .fs-pick")).to_have_count(0)
    choose_set(page, 0)
    page.locator("#compare-table .fs-pick").first.wait_for()


def test_a_row_without_a_recorded_run_says_so_and_keeps_the_run_shown(visit):
    page = visit.page
    page.get_by_role("tab", name="Fuse", exact=True).click()
    visit.run_and_wait()
    open_tab(page, "Compare")
    choose_set(page, 0)
    page.locator("#compare-table tbody tr", has_text="EPIC").first.locator(".fs-pick").click()
    page.get_by_text("No recorded run holds EPIC").wait_for()
    assert page.locator("#compare-table").is_visible()
    page.wait_for_timeout(1000)
    page.get_by_role("tab", name="Fuse", exact=True).click()
    expect(page.locator("#fuse-banner .fs-badge-live")).to_have_count(1)


def test_a_row_opens_its_recorded_run_in_the_fuse_tab(visit):
    page = visit.page
    choose_set(page, 0)
    page.locator("#compare-table .fs-pick").first.wait_for()
    rows = page.locator("#compare-table tbody tr").filter(has=page.locator("th", has_text="QCFuse"))
    rows.nth(1).locator(".fs-pick").focus()
    page.keyboard.press("Enter")
    page.locator("#fuse-banner").wait_for()
    page.get_by_text("Preview: the exact").wait_for()
    assert "ratio 0.10" in page.locator("#fuse-preview-note").inner_text()
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)


def test_claims_filter_by_verdict(visit):
    page = visit.page
    open_tab(page, "Claims")
    total = page.locator("#claims-view .fs-claim").count()
    button = page.locator("#claims-view .fs-count").nth(4)
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("#claims-view .fs-count").nth(4).get_attribute("aria-pressed") == "true"
    shown = page.locator("#claims-view .fs-claim").count()
    assert 0 < shown < total and "not testable here" in page.locator("#claims-view .fs-finding").first.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("#claims-view .fs-claim")).to_have_count(total)


# The width does not depend on the theme, so each is seen with one.
@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light"), (1920, 1080, "dark")])
def test_no_tab_scrolls_sideways(browser, url, width, height, theme):
    with visiting(browser, url, width, height, theme=theme) as visit:
        for name in ("Compare", "Claims"):
            open_tab(visit.page, name)
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.problems == []
