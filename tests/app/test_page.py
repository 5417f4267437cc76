"""The page in a browser, over the fake session: what a visitor sees, presses and gets."""

import pytest
from launch import visiting
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PICTURES = ("map", "attention", "agreement", "overlap", "ttft", "timeline", "kv")


@pytest.fixture(scope="module")
def opened(browser, plain_url):
    with visiting(browser, plain_url) as visit:
        yield visit


@pytest.fixture
def shared(opened):
    """One visit for the tests that leave the page as it was."""
    yield opened
    assert opened.problems == []


@pytest.fixture(scope="module")
def opened_to_run(browser, plain_url):
    with visiting(browser, plain_url) as visit:
        yield visit


@pytest.fixture
def visit(opened_to_run):
    """One visit for the tests that run something, whatever ran before."""
    yield opened_to_run
    assert opened_to_run.problems == []


def wait_for_tokens(page):
    page.wait_for_function("() => document.querySelectorAll('#fuse-text .fs-token').length > 2000")


def open_file(page, path):
    with page.expect_file_chooser() as chooser:
        page.locator("#fuse-open").click()
    chooser.value.set_files(path)


def test_opens_with_a_recorded_run_and_all_pictures(shared):
    page = shared.page
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_text("REPLAY")
    expect(page.locator("#fuse-banner")).to_contain_text("QCFuse recomputed 30")
    for name in PICTURES:
        expect(page.locator(f"#fuse-{name} .js-plotly-plot")).to_have_count(1)
    expect(page.locator("#fuse-cards .fs-card")).to_have_count(3)
    wait_for_tokens(page)
    expect(page.locator("#fuse-top tbody tr")).to_have_count(20)


def test_hover_tells_token_rank_and_score(shared):
    page = shared.page
    wait_for_tokens(page)
    detail, token = page.locator("#fuse-text .fs-token-detail"), page.locator("#fuse-text .fs-text-frame .fs-token").nth(5)
    position = int(token.get_attribute("data-p"))
    token.hover()
    for word in (f"position {position} ·", "rank", "score"):
        expect(detail).to_contain_text(word)
    # Text that moves under the mouse is pointed at as well.
    page.mouse.move(0, 0)
    page.locator("#fuse-text .fs-text-frame").press("ArrowRight")
    expect(detail).to_contain_text(f"position {position + 1} ·")


def test_picture_and_ratio_change_without_the_engine(shared):
    page, note = shared.page, shared.page.locator("#fuse-preview-note")
    method, ratio = page.locator("#fuse-method label"), page.locator("#fuse-preview input[type=number]")
    expect(note).to_contain_text("This is the set that was run")
    method.nth(1).click()
    expect(note).to_contain_text("Direct reuse has no ranking")
    method.nth(2).click()
    expect(note).to_contain_text("This is the set that was run")
    ratio.fill("0.1")
    ratio.press("Enter")
    expect(note).to_contain_text("Preview: the exact")
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)
    ratio.fill("0.3")
    ratio.press("Enter")
    expect(note).to_contain_text("This is the set that was run")


def test_download_and_reopen(shared, tmp_path):
    page = shared.page
    with page.expect_download() as download:
        page.locator("#fuse-download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name.endswith(".run.json.gz")
    bad = tmp_path / "bad.run.json.gz"
    bad.write_bytes(b"rubbish")
    open_file(page, bad)
    page.locator("#fuse-status .fs-status-error").wait_for()
    open_file(page, path)
    page.get_by_text("The run of the file is shown.").wait_for()


def test_page_never_scrolls_sideways_on_a_screen(shared):
    for width, height in ((1280, 720), (1920, 1080)):
        shared.wait_until_it_fits(width, height)


def test_page_never_scrolls_sideways_on_a_phone(phone):
    phone.page.get_by_role("tab", name="Fuse", exact=True).click()
    phone.page.locator("#fuse-kv .js-plotly-plot .main-svg").first.wait_for()
    phone.wait_until_it_fits()


def test_a_run_of_the_chosen_chunks_shows_live_numbers_and_outlives_an_error(visit):
    page, chunks, banner = visit.page, visit.page.locator("#fuse-chunks"), visit.page.locator("#fuse-banner")
    # By keyboard: the first chunk goes down, the third is dropped.
    chunks.locator(".fs-down").first.press("Enter")
    expect(chunks.locator(".fs-chunk-title").first).to_have_text("Lantern ferry timetable")
    chunks.locator("input").nth(2).press("Space")
    expect(chunks).to_contain_text("11 of 12")
    visit.run_and_wait()
    expect(page.locator("#fuse-status")).to_contain_text("measured just now")
    expect(banner).to_contain_text("median of 3")
    expect(page.locator("#fuse-cards")).to_contain_text("faster")
    titles = page.locator("#fuse-text h4 bdi")
    expect(titles).to_have_count(11)
    for i, title in enumerate(("Lantern ferry timetable", "Tidal gate of Orsund", "The Velden lighthouse")):
        expect(titles.nth(i)).to_have_text(title)
    expect(page.locator("#fuse-run")).to_be_enabled()

    visit.ask("please fail")
    page.locator("#fuse-status .fs-status-error").wait_for()
    expect(page.locator("#fuse-status")).to_contain_text("The chunk store is full")
    assert "Traceback" not in page.content()
    expect(banner.locator(".fs-badge-live")).to_have_count(1)
    expect(banner).to_contain_text("Who designed the tidal gate of Orsund?")
    visit.ask("Which year?")
    expect(banner).to_contain_text("Which year?")


def test_hostile_text_stays_text_and_a_giant_line_does_not_freeze_the_page(visit):
    page = visit.page
    page.locator("#fuse-scenario input").click()
    page.get_by_role("option").nth(1).click()
    expect(page.locator("#fuse-text h4")).to_have_count(3)
    visit.run_and_wait()
    # The recorded run holds less of the line.
    wait_for_tokens(page)
    expect(page.locator("#fuse-chunks li")).to_have_count(3)
    expect(page.locator("#fuse-cards .fs-gold")).to_contain_text("<b>bold?</b>")
    expect(page.locator("#fuse-top tbody tr")).to_have_count(20)
    expect(page.locator("#fuse-banner")).to_contain_text("${window.__pwned=1} and {{value}}")
    for name in ("chunks", "text", "banner", "cards", "top"):
        expect(page.locator(f"#fuse-{name} img, #fuse-{name} script, #fuse-{name} b")).to_have_count(0)
    expect(page.locator("#fuse-text h4 bdi").first).to_have_text("<img src=x onerror=window.__pwned=4> ${1+1} {{value}}")
    expect(page.locator("#fuse-text .fs-more").first).to_contain_text("Show more")
    # A picture that is drawn anew meanwhile loses what it told, so it is asked until it tells.
    page.wait_for_function(
        """() => {
          const plot = document.querySelector("#fuse-map .js-plotly-plot");
          window.Plotly.Fx.hover(plot, {xval: 40, yval: 5}, ["xy"]);
          return plot.querySelector(".hoverlayer .hovertext");
        }"""
    )
    expect(page.locator("#fuse-map .hoverlayer img")).to_have_count(0)
    assert page.evaluate("window.__pwned") is None


# The last one: it takes the visits of the tests above.
def test_two_visitors_wait_for_each_other_and_do_not_see_each_other(shared, visit):
    first, second = shared.page, visit.page
    # A run that goes on until it is stopped, so that the second visitor waits however slow the machine is.
    shared.ask("Secret: which year never ends?")
    first.locator("#fuse-status .fs-partial-card").first.wait_for()
    expect(first.locator("#fuse-stop")).to_be_enabled()
    expect(first.locator("#fuse-run")).to_be_disabled()
    visit.ask("Which year do I wait for?")
    second.get_by_text("1 request ahead").wait_for()
    first.locator("#fuse-stop").click()
    first.get_by_text("Stopped. The run before it is still shown.").wait_for()
    expect(first.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)
    expect(second.locator("#fuse-banner")).to_contain_text("Which year do I wait for?")
    shared.ask("Secret: which year?")
    first.locator("#fuse-banner .fs-badge-live").wait_for()
    expect(first.locator("#fuse-banner")).to_contain_text("Secret")
    assert "Secret" not in second.content()
