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
    with served("fakes:FakeSession", delay_s=0.1, recorded_methods=MANY) as address:
        yield address


@pytest.fixture
def visit(browser, url):
    with visiting(browser, url) as opened:
        yield opened
        assert opened.problems == []


def test_a_dozen_methods_are_side_by_side_and_each_can_be_pictured(visit):
    page = visit.page
    expect(page.locator("#fuse-cards .fs-card")).to_have_count(len(MANY))
    expect(page.locator("#fuse-method label")).to_have_count(len(MANY))
    expect(page.locator("#fuse-counts tbody tr")).to_have_count(len(MANY))
    assert "Of 11 methods, closest to full prefill" in page.locator("#fuse-banner").inner_text()
    page.locator("#fuse-method label", has_text="CacheBlend").click()
    page.locator("#fuse-map .gtitle", has_text="layer 0 ran all").wait_for()
    page.locator("#fuse-method label", has_text="EPIC").click()
    page.locator("#fuse-attention", has_text="EPIC has no scores").wait_for()
    assert "ranks tokens without scores" in page.locator("#fuse-top").inner_text()


def test_methods_are_chosen_by_keyboard_and_explained_on_the_way(visit):
    page = visit.page
    assert f"3 of {NUM} chosen" in page.locator("#fuse-methods").inner_text()
    page.get_by_role("checkbox", name="CacheBlend", exact=True).focus()
    assert "2405.16444" in page.locator("#fuse-methods .fs-method-rule").inner_text()
    page.keyboard.press("Space")
    assert f"4 of {NUM} chosen" in page.locator("#fuse-methods").inner_text()
    visit.run_and_wait()
    page.wait_for_function("document.querySelectorAll('#fuse-cards .fs-card').length === 4")
    assert page.get_by_role("checkbox", name="CacheBlend", exact=True).is_checked()
    page.get_by_role("button", name="Choose all methods").click()
    visit.page.locator("#fuse-run").click()
    page.wait_for_function(f"document.querySelectorAll('#fuse-cards .fs-card').length === {NUM}")
    page.get_by_role("button", name="Choose the usual methods").click()
    assert f"3 of {NUM} chosen" in page.locator("#fuse-methods").inner_text()


def test_every_method_is_listed_with_its_source(visit):
    page = visit.page
    page.get_by_text("What each method does, and where it is from").click()
    expect(page.locator("#fuse-methods .fs-method-list dt")).to_have_count(NUM)
    assert "arXiv 2410.15332" in page.locator("#fuse-methods .fs-method-list").inner_text()


def test_chunk_contexts_have_a_sentence_each_and_are_sent(visit):
    page = visit.page
    page.get_by_role("button", name="How chunk caches are made").click()
    page.locator("#fuse-context label").last.wait_for()
    expect(page.locator("#fuse-context label")).to_have_count(len(CHUNK_CONTEXTS))
    page.locator("#fuse-context label", has_text="Alone, as in the papers").click()
    visit.run_and_wait()
    page.wait_for_function("document.querySelectorAll('#fuse-cards .fs-card').length === 3")
    assert "alone" in page.locator("#fuse-counts").inner_text()


def test_text_and_figures_point_at_the_same_token(visit):
    page = visit.page
    page.locator("#fuse-text .fs-token").nth(4).hover()
    assert "recomputed by" in page.locator("#fuse-text .fs-token-detail").inner_text()
    page.locator("#fuse-agreement .hoverlayer .hovertext").first.wait_for()
    page.locator("#fuse-agreement").scroll_into_view_if_needed()
    box = page.locator("#fuse-agreement .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.8)
    page.mouse.move(box["x"] + box["width"] * 0.52, box["y"] + box["height"] * 0.8)
    page.wait_for_function("Number(document.querySelector('#fuse-text .fs-token-current').dataset.p) > 500")
    assert "position 1," in page.locator("#fuse-text .fs-token-detail").inner_text()


def test_another_ratio_redraws_the_choices_of_all_methods(visit):
    page = visit.page
    page.locator("#fuse-agreement .gtitle", has_text="at ratio 0.30").wait_for()
    page.locator("#fuse-preview input[type=number]").fill("0.1")
    page.keyboard.press("Enter")
    page.locator("#fuse-agreement .gtitle", has_text="at ratio 0.10").wait_for()
    assert "times are measured at 0.30" in page.locator("#fuse-preview").inner_text()
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)


def test_a_second_question_shows_what_it_changes(visit):
    page = visit.page
    assert page.locator("#flip-question input").input_value() == SECOND
    page.locator("#flip-run").click()
    page.get_by_text("Both questions are compared.").wait_for()
    page.locator("#flip-figure .gtitle", has_text="question A and B").wait_for()
    expect(page.locator("#flip-cards .fs-card")).to_have_count(2)
    expect(page.locator("#flip-chunks tbody tr")).to_have_count(12)
    assert "only for B" in page.locator("#flip-note").inner_text()
    expect(page.locator("#fuse-banner .fs-badge-replay")).to_have_count(1)
    page.locator("#flip-question input").fill("please fail")
    page.keyboard.press("Enter")
    page.locator("#flip-run:enabled").click()
    page.locator("#flip-status .fs-status-error").wait_for()
    expect(page.locator("#flip-cards .fs-card")).to_have_count(2)


def test_stop_ends_a_comparison_and_the_next_one_works(visit):
    page = visit.page
    page.locator("#flip-question input").fill("Which year never ends?")
    page.keyboard.press("Enter")
    page.locator("#flip-run").click()
    page.locator("#flip-status .fs-partial-card").first.wait_for()
    page.locator("#flip-stop:enabled").click()
    page.locator("#flip-status").get_by_text("Stopped.").wait_for()
    page.locator("#flip-question input").fill("Which year?")
    page.keyboard.press("Enter")
    page.locator("#flip-run:enabled").click()
    page.get_by_text("Both questions are compared.").wait_for()


# The width does not depend on the theme, so each is seen with one.
@pytest.mark.parametrize(("width", "height", "theme"), [(390, 844, "light"), (1920, 1080, "dark")])
def test_page_never_scrolls_sideways_with_a_dozen_methods(browser, url, width, height, theme):
    with visiting(browser, url, width, height, theme=theme) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width and visit.problems == []
