"""Live and recorded on the Play tab: a failure plays the recorded run, a run that ends is shown at once, two questions."""

import pytest
from launch import served
from play_visits import open_tab, playing, wait_for_state
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def hold(tmp_path_factory):
    """The path of a file: while it is there, no run ends."""
    return tmp_path_factory.mktemp("live") / "hold"


@pytest.fixture(scope="module")
def url(hold):
    with served("fakes:FakeSession", held_by=str(hold)) as address:
        yield address


@pytest.fixture(scope="module")
def opened(browser, url):
    with playing(browser, url) as visit:
        yield visit


@pytest.fixture
def visit(opened):
    """One visit to the Play tab for all of them, in their order: two questions, a run that ends, a run that fails."""
    open_tab(opened.page, "Play")
    yield opened
    assert opened.problems == []


def ask_and_watch(visit, hold, question):
    """Asks in the Fuse tab what no run answers yet, turns to the film and returns its line that says so."""
    hold.touch()
    open_tab(visit.page, "Fuse")
    visit.ask(question)
    visit.page.locator("#fuse-status .fs-status-busy").wait_for()
    open_tab(visit.page, "Play")
    reason = visit.page.locator("#play-run .fp-reason")
    reason.get_by_text("Meanwhile the recorded run plays.").wait_for()
    return reason


def test_two_questions_of_the_fuse_tab_stand_on_the_map(visit):
    page, line = visit.page, visit.page.locator("#play-run .fp-flip")
    expect(line).to_be_hidden()
    open_tab(page, "Fuse")
    # Offered last of all, once the run is shown.
    expect(page.locator("#flip-question input")).to_have_value("In which year was the tidal gate designed?")
    page.locator("#flip-run").click()
    page.locator("#flip-status .fs-status-done").wait_for()
    page.locator("#flip-note").get_by_text("only for B").wait_for()
    told = page.locator("#flip-note").inner_text()
    open_tab(page, "Play")
    expect(line).to_contain_text("In which year was the tidal gate designed?")
    counts = [part.rpartition(": ")[2] for part in line.inner_text().rstrip(".").split("; ")]
    assert len(counts) == 3 and all(count in told for count in counts)


def test_a_run_that_ends_while_the_film_is_on_is_shown_with_the_recorded_one_beneath(visit, hold):
    page, badge = visit.page, visit.page.locator("#play-run .fp-badge").first
    reason = ask_and_watch(visit, hold, "Who designed the tidal gate of Orsund?")
    expect(badge).to_have_text("REPLAY")
    hold.unlink()
    page.locator("#play-run .fp-badge-live").first.wait_for()
    page.locator("#play-run .fp-ghost").get_by_text("Outlined: the recorded run").wait_for()
    expect(reason).to_be_hidden()
    page.keyboard.press("l")
    page.locator("#play-run .fp-badge-replay").first.wait_for()


def test_a_run_that_fails_leaves_the_recorded_one_with_the_reason_and_the_next_one_is_shown(visit, hold):
    page, badge = visit.page, visit.page.locator("#play-run .fp-badge").first
    reason = ask_and_watch(visit, hold, "Does this fail?")
    hold.unlink()
    reason.get_by_text("The chunk store is full").wait_for()
    expect(reason).to_contain_text("Instead the recorded run plays.")
    expect(badge).to_have_text("REPLAY")
    wait_for_state(page, scenario="harbour")
    open_tab(page, "Fuse")
    visit.ask("Which year?")
    page.locator("#fuse-banner .fs-badge-live").wait_for()
    open_tab(page, "Play")
    expect(badge).to_have_text("LIVE")
    expect(page.locator("#play-run .fp-question")).to_have_text("Which year?")
