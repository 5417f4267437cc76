"""The page in a browser, over the fake session: what a visitor sees, presses and gets."""

import pytest
from launch import served, visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession", delay_s=0.25) as address:
        yield address


@pytest.fixture
def visit(browser, url):
    with visiting(browser, url) as opened:
        yield opened
        assert opened.problems == []


def test_opens_with_a_recorded_run_and_all_pictures(visit):
    page = visit.page
    assert page.locator("#fuse-banner .fs-badge-replay").inner_text().strip() == "REPLAY"
    assert "QCFuse recomputed 30" in page.locator("#fuse-banner").inner_text()
    for name in ("map", "attention", "ttft", "timeline", "kv"):
        expect(page.locator(f"#fuse-{name} .js-plotly-plot")).to_have_count(1)
    expect(page.locator("#fuse-cards .fs-card")).to_have_count(3)
    assert page.locator("#fuse-text .fs-token").count() > 2000
    expect(page.locator("#fuse-top tbody tr")).to_have_count(20)


def test_run_shows_live_numbers(visit):
    page = visit.page
    page.locator("#fuse-run").click()
    page.locator("#fuse-banner .fs-badge-live").wait_for()
    assert "measured just now" in visit.status()
    assert "median of 3" in page.locator("#fuse-banner").inner_text()
    assert "faster" in page.locator("#fuse-cards").inner_text()
    page.locator("#fuse-run:enabled").wait_for()


def test_chunks_reorder_and_drop_by_keyboard(visit):
    page = visit.page
    page.locator("#fuse-chunks .fs-down").first.focus()
    page.keyboard.press("Enter")
    page.locator("#fuse-chunks input").nth(2).focus()
    page.keyboard.press("Space")
    assert "11 of 12" in page.locator("#fuse-chunks").inner_text()
    visit.run_and_wait()
    page.wait_for_function("document.querySelectorAll('#fuse-text h4').length === 11")
    titles = page.locator("#fuse-text h4 bdi").all_inner_texts()
    assert titles[:3] == ["Lantern ferry timetable", "Tidal gate of Orsund", "The Velden lighthouse"]


def test_partial_answers_show_and_stop_keeps_the_run_before_and_the_next_run_works(visit):
    page = visit.page
    page.locator("#fuse-question input").fill("Which year never ends?")
    page.keyboard.press("Enter")
    page.locator("#fuse-run").click()
    page.locator("#fuse-status .fs-partial-card").first.wait_for()
    assert page.locator("#fuse-stop").is_enabled() and page.locator("#fuse-run").is_disabled()
    page.locator("#fuse-stop").click()
    page.get_by_text("Stopped. The run before it is still shown.").wait_for()
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)
    page.locator("#fuse-question input").fill("Which year?")
    page.keyboard.press("Enter")
    page.locator("#fuse-run:enabled").click()
    page.locator("#fuse-banner .fs-badge-live").wait_for()


def test_an_engine_error_is_a_sentence_and_leaves_the_page_usable(visit):
    page = visit.page
    page.locator("#fuse-question input").fill("please fail")
    page.keyboard.press("Enter")
    page.locator("#fuse-run").click()
    page.locator("#fuse-status .fs-status-error").wait_for()
    assert "The chunk store is full" in visit.status() and "Traceback" not in page.content()
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)
    page.locator("#fuse-question input").fill("Which year?")
    page.keyboard.press("Enter")
    visit.run_and_wait()
    assert "Which year?" in page.locator("#fuse-banner").inner_text()


def test_hostile_text_stays_text_and_a_giant_line_does_not_freeze_the_page(visit):
    page = visit.page
    page.locator("#fuse-scenario input").click()
    page.get_by_role("option").nth(1).click()
    page.wait_for_function("document.querySelectorAll('#fuse-text h4').length === 3")
    visit.run_and_wait()
    page.wait_for_function("document.querySelectorAll('#fuse-text .fs-token').length > 2000")
    assert page.evaluate("window.__pwned") is None
    for name in ("chunks", "text", "banner", "cards", "top"):
        expect(page.locator(f"#fuse-{name} img, #fuse-{name} script, #fuse-{name} b")).to_have_count(0)
    assert page.locator("#fuse-text h4 bdi").first.inner_text() == "<img src=x onerror=window.__pwned=4> ${1+1} {{value}}"
    assert "${window.__pwned=1} and {{value}}" in page.locator("#fuse-banner").inner_text()
    assert "Show more" in page.locator("#fuse-text .fs-more").first.inner_text()
    page.evaluate("Plotly.Fx.hover(document.querySelector('#fuse-map .js-plotly-plot'), {xval: 40, yval: 5}, ['xy'])")
    expect(page.locator("#fuse-map .hoverlayer img")).to_have_count(0)


def test_hover_tells_token_rank_and_score(visit):
    page = visit.page
    page.locator("#fuse-text .fs-token").nth(5).hover()
    detail = page.locator("#fuse-text .fs-token-detail").inner_text()
    assert "position" in detail and "rank" in detail and "score" in detail
    page.locator("#fuse-text .fs-text-frame").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#fuse-text .fs-token-detail").inner_text() != detail


def test_picture_and_ratio_change_without_the_engine(visit):
    page = visit.page
    page.locator("#fuse-method label").nth(1).click()
    page.get_by_text("Direct reuse has no ranking").wait_for()
    page.locator("#fuse-method label").nth(2).click()
    page.get_by_text("This is the set that was run").wait_for()
    page.locator("#fuse-preview input[type=number]").fill("0.1")
    page.keyboard.press("Enter")
    page.get_by_text("Preview: the exact").wait_for()
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)


def test_download_and_reopen(visit, tmp_path):
    page = visit.page
    with page.expect_download() as download:
        page.locator("#fuse-download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name.endswith(".run.json.gz")
    page.locator("#fuse-open input[type=file], input[type=file]").last.set_input_files(path)
    page.get_by_text("The run of the file is shown.").wait_for()
    bad = tmp_path / "bad.run.json.gz"
    bad.write_bytes(b"rubbish")
    page.locator("#fuse-open input[type=file], input[type=file]").last.set_input_files(bad)
    page.locator("#fuse-status .fs-status-error").wait_for()


def test_two_visitors_do_not_see_each_other(browser, url):
    with visiting(browser, url) as first, visiting(browser, url) as second:
        # A run that goes on until it is stopped, so that the second visitor waits however slow the machine is.
        first.page.locator("#fuse-question input").fill("Secret: which year never ends?")
        first.page.keyboard.press("Enter")
        first.page.locator("#fuse-run:enabled").click()
        first.page.locator("#fuse-status .fs-partial-card").first.wait_for()
        second.page.locator("#fuse-run:enabled").click()
        second.page.get_by_text("1 request ahead").wait_for()
        first.page.locator("#fuse-stop:enabled").click()
        second.page.locator("#fuse-banner .fs-badge-live").wait_for()
        first.page.locator("#fuse-question input").fill("Secret: which year?")
        first.page.keyboard.press("Enter")
        first.page.locator("#fuse-run:enabled").click()
        first.page.locator("#fuse-banner .fs-badge-live").wait_for()
        assert "Secret" in first.page.locator("#fuse-banner").inner_text()
        assert "Secret" not in second.page.content()
        assert first.problems == [] and second.problems == []


# The width does not depend on the theme, so each is seen with one.
@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "dark"), (1280, 720, "light"), (1920, 1080, "dark")])
def test_page_never_scrolls_sideways(browser, url, width, height, theme):
    with visiting(browser, url, width, height, theme=theme) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width and visit.problems == []
