"""Live and recorded on the Play tab: a failure plays the recorded run, a run that ends is shown at once, two questions."""

import pytest
from launch import served
from play_visits import open_tab, playing, state

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession", delay_s=0.4) as address:
        yield address


def ask(page, question):
    """Types a question and starts a run."""
    open_tab(page, "Fuse")
    page.locator("#fuse-question input").fill(question)
    page.locator("#fuse-question input").press("Enter")
    page.locator("#fuse-run").click()


def test_a_run_that_ends_while_the_film_is_on_is_shown_with_the_recorded_one_beneath(browser, url):
    with playing(browser, url) as visit:
        page = visit.page
        ask(page, "Who designed the tidal gate of Orsund?")
        page.locator("#fuse-status .fs-status-busy").wait_for()
        open_tab(page, "Play")
        reason = page.locator("#play-run .fp-reason")
        reason.get_by_text("Meanwhile the recorded run plays.").wait_for()
        assert page.locator("#play-run .fp-badge").first.inner_text() == "REPLAY"
        page.locator("#play-run .fp-badge-live").first.wait_for()
        page.locator("#play-run .fp-ghost").get_by_text("Outlined: the recorded run").wait_for()
        assert not reason.is_visible()
        page.keyboard.press("l")
        page.locator("#play-run .fp-badge-replay").first.wait_for()
        assert visit.problems == []


def test_a_run_that_fails_leaves_the_recorded_one_with_the_reason(browser, url):
    with playing(browser, url) as visit:
        page = visit.page
        ask(page, "Does this fail?")
        open_tab(page, "Play")
        page.locator("#play-run .fp-reason").get_by_text("The chunk store is full").wait_for()
        assert "Instead the recorded run plays." in page.locator("#play-run .fp-reason").inner_text()
        assert page.locator("#play-run .fp-badge").first.inner_text() == "REPLAY" and state(page)["scenario"] == "harbour"
        assert visit.problems == []


def test_two_questions_of_the_fuse_tab_stand_on_the_map(browser, url):
    with playing(browser, url) as visit:
        page = visit.page
        assert not page.locator("#play-run .fp-flip").is_visible()
        open_tab(page, "Fuse")
        page.locator("#flip-run").click()
        page.locator("#flip-status .fs-status-done").wait_for()
        page.locator("#flip-note").get_by_text("only for B").wait_for()
        told = page.locator("#flip-note").inner_text()
        open_tab(page, "Play")
        line = page.locator("#play-run .fp-flip")
        line.wait_for()
        counts = [part.rpartition(": ")[2] for part in line.inner_text().rstrip(".").split("; ")]
        assert len(counts) == 3 and all(count in told for count in counts)
        assert "In which year was the tidal gate designed?" in line.inner_text() and visit.problems == []
