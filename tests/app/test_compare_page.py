"""The Compare and Claims tabs in a browser, over the fake session."""

import pytest
from launch import visiting
from playwright.sync_api import expect
from results_samples import sample_results

from engine.resultsfile import dump_results, parse_results

pytestmark = pytest.mark.browser
# The tab's own address; its table is the last to come.
COMPARE = {"query": "tab=compare", "ready": "#compare-table tbody tr"}


@pytest.fixture(scope="module")
def opened(browser, plain_url):
    with visiting(browser, plain_url, **COMPARE) as visit:
        wait_for_tab(visit.page, "Compare")
        yield visit


@pytest.fixture
def shared(opened):
    """One visit, in the Compare tab, for the tests that leave the page as it was."""
    open_tab(opened.page, "Compare")
    yield opened
    assert opened.problems == []


def open_tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()
    wait_for_tab(page, name)


def wait_for_tab(page, name):
    if name == "Compare":
        page.locator("#compare-pareto .js-plotly-plot .main-svg").first.wait_for()
        page.locator("#compare-break-even .js-plotly-plot .main-svg").first.wait_for()
        page.locator("#compare-table tbody tr").first.wait_for()
    else:
        page.locator("#claims-view .fs-claim").first.wait_for()


def choose_set(page, number):
    page.locator("#compare-set input").click()
    page.get_by_role("option").nth(number).click()


def open_file(page, path):
    with page.expect_file_chooser() as chooser:
        page.locator("#compare-open").click()
    chooser.value.set_files(path)


def test_opens_with_pictures_numbers_and_where_they_come_from(shared):
    page = shared.page
    expect(page.locator("#compare-banner .fs-badge-replay")).to_have_text("REPLAY")
    expect(page.locator("#compare-banner")).to_contain_text("n = 60")
    expect(page.locator("#compare-methods input:checked")).to_have_count(8)
    expect(page.locator("#compare-pareto .annotation-text")).to_have_count(8)
    expect(page.locator("#compare-break-even .js-plotly-plot")).to_have_count(1)
    expect(page.locator("#compare-break-even-note")).to_contain_text("Pays from use 2: ")
    expect(page.locator("#compare-equal")).to_contain_text("40 % less")
    expect(page.locator("#compare-note")).to_contain_text("python -m engine.bench fuse")


def test_columns_sort_by_keyboard_and_say_so(shared):
    page = shared.page
    head, first = page.locator("#compare-table thead th").nth(2), page.locator("#compare-table tbody th").first
    before = first.inner_text()
    # The third press brings the first order back.
    for way, name in (("ascending", "Direct reuse"), ("descending", "Full prefill"), ("none", before)):
        head.locator("button").press("Enter")
        expect(head).to_have_attribute("aria-sort", way)
        expect(first).to_have_text(name)


def test_the_papers_figure_stands_beside_ours_and_ours_keeps_its_width(shared):
    page, figure = shared.page, shared.page.locator("#compare-published-plot")
    expect(figure).to_be_hidden()
    page.locator("#compare-published input").check()
    figure.locator(".js-plotly-plot .main-svg").first.wait_for()
    expect(page.get_by_text("Published, not measured here")).to_be_visible()
    frame = "document.querySelector('#compare-pareto')"
    page.wait_for_function(f"() => {frame}.querySelector('.main-svg')?.clientWidth <= {frame}.clientWidth")
    page.locator("#compare-published input").uncheck()
    expect(figure).to_be_hidden()


def test_downloads_hold_the_set(shared, tmp_path):
    page = shared.page
    for name in ("csv", "json"):
        with page.expect_download() as download:
            page.locator(f"#compare-{name}").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.name.startswith("fusescope-results-two-hop") and path.suffix == f".{name}"
    assert parse_results(path.read_bytes(), "fuse-two-hop") == sample_results()


def test_claims_filter_by_verdict(shared):
    page = shared.page
    open_tab(page, "Claims")
    claims, button = page.locator("#claims-view .fs-claim"), page.locator("#claims-view .fs-count").nth(4)
    total, number = claims.count(), int(button.locator("strong").inner_text())
    assert 0 < number < total
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(claims).to_have_count(number)
    expect(page.locator("#claims-view .fs-finding").first).to_contain_text("not testable here")
    button.press("Enter")
    expect(claims).to_have_count(total)


def test_no_tab_scrolls_sideways_on_a_screen(shared):
    for width, height in ((1280, 720), (1920, 1080)):
        shared.wait_until_it_fits(width, height)
        open_tab(shared.page, "Claims")
        shared.wait_until_it_fits()
        open_tab(shared.page, "Compare")


def test_no_tab_scrolls_sideways_on_a_phone(phone):
    for tab in ("Compare", "Claims"):
        open_tab(phone.page, tab)
        phone.wait_until_it_fits()


# What follows leaves another page each time, so the order counts.
def test_a_row_opens_its_recorded_run_in_the_fuse_tab_and_says_where_there_is_none(shared):
    page = shared.page
    rows, picks = page.locator("#compare-table tbody tr"), page.locator("#compare-table .fs-pick")
    open_fuse = page.get_by_role("tab", name="Fuse", exact=True)
    # A row of a set without runs offers none.
    expect(picks).to_have_count(0)
    open_fuse.click()
    shared.run_and_wait()
    open_tab(page, "Compare")
    choose_set(page, 0)
    rows.filter(has_text="EPIC").first.locator(".fs-pick").click()
    page.get_by_text("No recorded run holds EPIC").wait_for()
    expect(page.locator("#compare-table")).to_be_visible()
    # By the time that the server has answered once more, what it had to say of the row is on the page.
    page.locator("#compare-log input").check()
    page.locator("#compare-pareto .xtitle").get_by_text("(log)").wait_for()
    open_fuse.click()
    expect(page.locator("#fuse-banner .fs-badge-live")).to_have_count(1)
    open_tab(page, "Compare")
    rows.filter(has=page.locator("th", has_text="QCFuse")).nth(1).locator(".fs-pick").press("Enter")
    expect(page.locator("#fuse-preview-note")).to_be_visible()
    expect(page.locator("#fuse-preview-note")).to_contain_text("Preview: the exact")
    expect(page.locator("#fuse-preview-note")).to_contain_text("ratio 0.10")
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)


def test_metric_methods_and_log_axis_change_picture_and_table(shared):
    page = shared.page
    page.locator("#compare-metric input").click()
    page.get_by_role("option", name="F1", exact=True).click()
    page.locator("#compare-table thead").get_by_text("F1").wait_for()
    page.locator("#compare-pareto .ytitle").get_by_text("F1 (higher is better)").wait_for()
    page.locator("#compare-all").click()
    expect(page.locator("#compare-table tbody tr")).to_have_count(73)
    page.locator("#compare-papers").click()
    expect(page.locator("#compare-pareto .annotation-text")).to_have_count(9)
    page.locator("#compare-log input").check()
    page.locator("#compare-pareto .xtitle").get_by_text("(log)").wait_for()


def test_a_file_opens_and_a_bad_one_is_a_sentence(shared, tmp_path):
    page = shared.page
    good, bad = tmp_path / "mine.json", tmp_path / "bad.json"
    good.write_bytes(dump_results(sample_results("hotpotqa", 500)))
    bad.write_bytes(b"{")
    open_file(page, good)
    expect(page.locator("#compare-banner")).to_contain_text("n = 500")
    expect(page.locator("#compare-status")).to_contain_text("The results of the file are shown.")
    open_file(page, bad)
    page.locator("#compare-status .fs-status-error").wait_for()
    expect(page.locator("#compare-banner")).to_contain_text("n = 500")
    open_tab(page, "Claims")
    expect(page.locator("#claims-view")).to_contain_text("hotpotqa · n = 500")
