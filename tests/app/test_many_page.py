"""The Fuse tab in a browser with a dozen methods: choosing them, their pictures side by side, a second question."""

import pytest
from fake_runs import ALL_METHODS
from launch import served, visiting
from playwright.sync_api import expect

from engine.types import CHUNK_CONTEXTS

pytestmark = pytest.mark.browser

NUM = len(ALL_METHODS)
MANY = (
    "full",
    "reuse",
    "reuse+primed",
    "qcfuse",
    "qcfuse+primed",
    "qcfuse_learned",
    "cacheblend",
    "epic",
    "qcall",
    "qclast",
    "random",
    "ape",
)
SECOND = "In which year was the tidal gate designed?"


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession", recorded_methods=MANY) as address:
        yield address


@pytest.fixture(scope="module")
def opened(browser, url):
    with visiting(browser, url) as visit:
        yield visit


@pytest.fixture
def shared(opened):
    """One visit for the tests that leave the page as it was."""
    yield opened
    assert opened.problems == []


def compare_with(page, question):
    """Asks a second question."""
    field = page.locator("#flip-question input")
    field.fill(question)
    field.press("Enter")
    page.locator("#flip-run").click()


def test_a_dozen_methods_are_side_by_side_and_each_can_be_pictured(shared):
    page, method = shared.page, shared.page.locator("#fuse-method label")
    expect(page.locator("#fuse-cards .fs-card")).to_have_count(len(MANY))
    expect(method).to_have_count(len(MANY))
    expect(page.locator("#fuse-counts tbody tr")).to_have_count(len(MANY))
    expect(page.locator("#fuse-banner")).to_contain_text("Of 11 methods, closest to full prefill")
    method.filter(has_text="CacheBlend").click()
    page.locator("#fuse-map .gtitle", has_text="layer 0 ran all").wait_for()
    method.filter(has_text="EPIC").click()
    page.locator("#fuse-attention", has_text="EPIC has no scores").wait_for()
    expect(page.locator("#fuse-top")).to_contain_text("ranks tokens without scores")
    method.get_by_text("QCFuse", exact=True).click()
    expect(page.locator("#fuse-top")).to_contain_text("tokens of QCFuse")


def test_every_method_is_listed_with_its_source(shared):
    page, listed = shared.page, shared.page.locator("#fuse-methods .fs-method-list")
    page.get_by_text("What each method does, and where it is from").click()
    expect(listed.locator("dt")).to_have_count(NUM)
    expect(listed).to_contain_text("arXiv 2410.15332")


def test_another_ratio_redraws_the_choices_of_all_methods(shared):
    page, ratio = shared.page, shared.page.locator("#fuse-preview input[type=number]")
    for shown, text in (("0.30", ""), ("0.10", "0.1"), ("0.30", "0.3")):
        if text:
            ratio.fill(text)
            ratio.press("Enter")
        page.locator("#fuse-agreement .gtitle", has_text=f"at ratio {shown}").wait_for()
        expect(page.locator("#fuse-preview")).to_contain_text("times are measured at 0.30")
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)


def test_text_and_figures_point_at_the_same_token(shared):
    page, detail = shared.page, shared.page.locator("#fuse-text .fs-token-detail")
    page.locator("#fuse-agreement .gtitle", has_text="at ratio 0.30").wait_for()
    page.locator("#fuse-text .fs-text-frame .fs-token").nth(4).hover()
    expect(detail).to_contain_text("recomputed by")
    page.locator("#fuse-agreement .hoverlayer .hovertext").first.wait_for()
    area = page.locator("#fuse-agreement .nsewdrag").first
    box = area.bounding_box()
    # Each waits until the picture stands still.
    area.hover(position={"x": box["width"] * 0.5, "y": box["height"] * 0.8})
    area.hover(position={"x": box["width"] * 0.52, "y": box["height"] * 0.8})
    page.wait_for_function("() => Number(document.querySelector('#fuse-text .fs-token-current').dataset.p) > 500")
    expect(detail).to_contain_text("position 1,")


# The width does not depend on the theme.
def test_page_never_scrolls_sideways_with_a_dozen_methods(shared):
    for width, height in ((390, 844), (1920, 1080)):
        shared.wait_until_it_fits(width, height)


def test_a_second_question_shows_what_it_changes_and_outlives_an_error_and_stop(shared):
    page, cards = shared.page, shared.page.locator("#flip-cards .fs-card")
    # Offered last of all, once the run is shown.
    expect(page.locator("#flip-question input")).to_have_value(SECOND)
    page.locator("#flip-run").click()
    page.get_by_text("Both questions are compared.").wait_for()
    page.locator("#flip-figure .gtitle", has_text="question A and B").wait_for()
    expect(cards).to_have_count(2)
    expect(page.locator("#flip-chunks tbody tr")).to_have_count(12)
    expect(page.locator("#flip-note")).to_contain_text("only for B")
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)
    compare_with(page, "please fail")
    page.locator("#flip-status .fs-status-error").wait_for()
    expect(cards).to_have_count(2)
    compare_with(page, "Which year never ends?")
    page.locator("#flip-status .fs-partial-card").first.wait_for()
    page.locator("#flip-stop").click()
    page.locator("#flip-status").get_by_text("Stopped.").wait_for()
    compare_with(page, "Which year?")
    page.get_by_text("Both questions are compared.").wait_for()
    expect(cards.last).to_contain_text("Which year?")


# The last one: it leaves another run.
def test_methods_are_chosen_by_keyboard_and_explained_on_the_way(shared):
    page, methods, cards = shared.page, shared.page.locator("#fuse-methods"), shared.page.locator("#fuse-cards .fs-card")
    expect(methods).to_contain_text(f"3 of {NUM} chosen")
    box = page.get_by_role("checkbox", name="CacheBlend", exact=True)
    box.focus()
    expect(methods.locator(".fs-method-rule")).to_contain_text("2405.16444")
    box.press("Space")
    expect(methods).to_contain_text(f"4 of {NUM} chosen")
    # Each way to make chunk caches has a sentence; the one chosen is sent too.
    page.get_by_role("button", name="How chunk caches are made").click()
    expect(page.locator("#fuse-context label")).to_have_count(len(CHUNK_CONTEXTS))
    page.locator("#fuse-context label", has_text="Alone, as in the papers").click()
    expect(page.locator("#fuse-context input:checked")).to_have_value("alone")
    shared.run_and_wait()
    expect(cards).to_have_count(4)
    expect(page.locator("#fuse-counts").get_by_text("alone", exact=True).first).to_be_visible()
    expect(box).to_be_checked()
    page.get_by_role("button", name="Choose all methods").click()
    page.locator("#fuse-run").click()
    expect(cards).to_have_count(NUM)
    page.get_by_role("button", name="Choose the usual methods").click()
    expect(methods).to_contain_text(f"3 of {NUM} chosen")
