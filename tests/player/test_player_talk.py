"""Playing and talking: the playhead, keys, the guided tour, presenter mode, the speaker's window."""

import pytest
from player_site import visiting_player
from playwright.sync_api import expect

from engine.runfile import load_run
from engine.session import as_replay
from viz.figures import words
from viz.player.static import RUNS_DIR

pytestmark = pytest.mark.browser
SERVO = as_replay(load_run(RUNS_DIR / "servo-manual.run.json.gz"))
HARBOUR = as_replay(load_run(RUNS_DIR / "harbour-museum.run.json.gz"))


def test_it_moves_by_itself_where_motion_is_welcome_and_says_how_slow(browser, site):
    # As slow as it gets, so that it still plays whenever it is looked at.
    with visiting_player(browser, site, "speed=0.02", motion="no-preference") as visit:
        first = visit.state()["time"]
        assert pace_of(visit) == "slowed down 50×"
        visit.wait(lambda: visit.state()["time"] > first)
        visit.page.keyboard.press("k")
        visit.drawn()
        stopped = visit.state()["time"]
        visit.drawn()
        assert 0 < stopped < 3 and visit.state()["time"] == stopped and visit.problems == []
        visit.page.keyboard.press("p")
        visit.page.keyboard.press("k")
        visit.drawn()
        assert visit.text(".fp-pace") == "slowed down 50×"


def pace_of(visit):
    return visit.page.locator(".fp-transport select").evaluate("(node) => node.selectedOptions[0].text")


def test_stepping_goes_from_event_to_event(visit):
    assert pace_of(visit) == "slowed down 4×", "unless the link says otherwise"
    visit.do(type="seek", time=0)
    visit.page.keyboard.press("]")
    visit.drawn()
    starts = [s.start_s for name in ("full", "cacheblend", "qcfuse") for s in SERVO.method(name).spans]
    ends = [s.end_s for name in ("full", "cacheblend", "qcfuse") for s in SERVO.method(name).spans]
    assert visit.state()["time"] == pytest.approx(min(t for t in starts + ends if t > 0), abs=1e-4)
    visit.page.keyboard.press("[")
    visit.drawn()
    assert visit.state()["time"] == 0


def test_the_whole_tour_by_page_down_alone(visit):
    visit.page.keyboard.press("t")
    seen = []
    others = {9: "harbour-museum", 11: "balanced", 12: "balanced", 13: "balanced", 14: "tool_use"}
    for number in range(1, 15):
        visit.await_scene(number, others.get(number, "servo-manual"))
        assert visit.text(".fp-counter") == f"{number} / 14"
        sentence = visit.text(".fp-sentence")
        assert "{" not in sentence and "–" not in sentence.replace(" – ", "")
        seen.append(sentence)
        visit.page.keyboard.press("PageDown")
    assert len(set(seen)) == 14
    assert words.seconds(HARBOUR.method("qcfuse").ttft_s) in seen[8]
    if HARBOUR.method("full").quality.contains_gold and not HARBOUR.method("qcfuse").quality.contains_gold:
        assert HARBOUR.gold_answers[0] in seen[8] and "does not" in seen[8]
    assert words.seconds(SERVO.method("qcfuse").ttft_s) in seen[7]
    visit.drawn()
    assert visit.state()["scene"] == 14


def test_two_quick_presses_move_two_scenes(visit):
    visit.page.keyboard.press("t")
    visit.drawn()
    visit.page.evaluate("""() => {
      for (let i = 0; i < 2; i++) document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true }));
    }""")
    visit.drawn()
    assert visit.state()["scene"] == 3


def test_the_scene_asked_for_last_wins_over_a_slower_load(visit):
    held = []
    visit.page.route("**/runs/harbour-museum.json", lambda route: held.append(route))
    visit.page.keyboard.press("9")
    visit.wait(lambda: held)
    visit.page.keyboard.press("7")
    held[0].continue_()
    come = "() => performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/harbour-museum.json'))"
    visit.wait(lambda: visit.page.evaluate(come))
    visit.drawn()
    assert visit.state()["scene"] == 7 and visit.state()["scenario"] == "servo-manual"


def test_keys_are_ignored_while_typing(visit):
    visit.page.evaluate(
        "() => { const field = document.createElement('input'); field.id = 'typing'; document.body.append(field); field.focus(); }"
    )
    before = visit.state()
    visit.page.keyboard.type("p3tbk?mh]")
    visit.page.keyboard.press("PageDown")
    visit.drawn()
    expect(visit.page.locator("#typing")).to_have_value("p3tbk?mh]")
    assert visit.state() == before


def test_presenter_mode_blank_help_and_escape(visit):
    page = visit.page
    page.keyboard.press("p")
    visit.drawn()
    assert visit.state()["present"] and page.locator(".fp-map").is_visible() and not page.locator(".fp-tables-panel").is_visible()
    size = page.evaluate("() => parseFloat(getComputedStyle(document.querySelector('.fp-sentence')).fontSize)")
    assert size >= 24
    page.set_viewport_size({"width": 960, "height": 540})
    visit.wait(lambda: page.locator(".fp-map-frame").bounding_box()["height"] > 540 / 4)
    visit.wait(lambda: page.locator(".fp-time-frame").bounding_box()["y"] < 540 * 0.85)
    for key, dark in (("b", True), ("b", False), (".", True), (".", False)):
        page.keyboard.press(key)
        visit.drawn()
        assert page.locator(".fp-blank").is_visible() == dark
    page.keyboard.press("b")
    visit.drawn()
    assert page.locator(".fp-blank").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    visit.drawn()
    assert page.locator(".fp-overlay-help").is_visible() and not page.locator(".fp-blank").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    visit.drawn()
    assert not visit.state()["present"] and not page.locator(".fp-overlay-help").is_visible()


def test_no_scene_of_the_talk_is_cut_off(browser, site):
    cut = """(watched) => [...document.querySelectorAll(watched)].filter((node) => node.offsetParent && (
        (node.clientHeight && node.scrollHeight > node.clientHeight + 8) || (node.clientWidth && node.scrollWidth > node.clientWidth + 2)
        || node.getBoundingClientRect().bottom > innerHeight + 1)).map((node) => node.className + ": " + node.textContent)"""
    low = "() => document.querySelector('.fp-time-frame').getBoundingClientRect().bottom"
    with visiting_player(browser, site, "present=1&scene=1", width=390, height=844) as visit:
        for width, height in ((390, 844), (1280, 720), (1920, 1080)):
            visit.page.set_viewport_size({"width": width, "height": height})
            # On a phone the answers scroll.
            watched = ".fp-sentence, .fp-scene-title" + (", .fp-answer, .fp-card-verdict, .fp-card-time" if width > 600 else "")
            for number in range(1, 11):
                visit.page.keyboard.press(str(number % 10))
                visit.await_scene(number, "harbour-museum" if number == 9 else "servo-manual")
                assert visit.page.evaluate(cut, watched) == [], (width, number)
                assert visit.page.evaluate(low) <= height + 1, (width, number)
        assert visit.problems == []


def test_the_speakers_window_follows_and_leads(visit):
    page = visit.page
    page.keyboard.press("t")
    visit.drawn()
    with page.expect_popup() as opened:
        page.keyboard.press("n")
    notes = opened.value
    notes.locator(".fp-scene-title").wait_for()
    visit.wait(lambda: notes.locator(".fp-counter").inner_text() == "1 / 14")
    notes.keyboard.press("PageDown")
    visit.wait(lambda: visit.state()["scene"] == 2)
    visit.wait(lambda: notes.locator(".fp-counter").inner_text() == "2 / 14")
    assert notes.locator(".fp-sentence").inner_text() == page.locator(".fp-sentence").inner_text()
