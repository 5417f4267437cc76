"""The Play tab in a browser, over the fake session: the run of the Fuse tab as a film, other recorded runs, the tour."""

import json

import gradio as gr
import pytest
from fakes import FakeSession
from play_visits import open_tab, wait_for_state
from playwright.sync_api import expect

from viz.panels.play import recorded_runs

pytestmark = pytest.mark.browser
FIRST, HOSTILE = FakeSession().scenarios()


@pytest.fixture
def opened(phone):
    """The tab on a phone."""
    open_tab(phone.page, "Play")
    phone.page.wait_for_function("() => performance.getEntriesByName('fusescope:first-picture').length > 0")
    return phone


def test_the_run_of_the_fuse_tab_is_shown_with_its_numbers(opened):
    page, film = opened.page, opened.page.locator("#play-run")
    for width, height in ((390, 844), (1920, 1080)):
        opened.wait_until_it_fits(width, height)
        expect(film.locator(".fp-question")).to_have_text(FIRST.questions[0].question)
        expect(film.locator(".fp-badge").first).to_have_text("REPLAY")
    wait_for_state(page, scenario=FIRST.name)


def test_the_run_is_handed_out_as_one_page_that_plays_by_itself(opened, tmp_path):
    with opened.page.expect_download() as begun:
        opened.page.locator("#play-page").click()
    alone = tmp_path / "run.html"
    begun.value.save_as(alone)
    with opened.page.context.new_page() as page:
        asked, problems = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(alone.as_uri())
        page.locator("canvas").first.wait_for()
        assert page.evaluate("window.fusescope.run().question") == FIRST.questions[0].question
        # Nothing but the file itself was asked for.
        assert asked == [alone.as_uri()] and problems == []


def test_another_recorded_run_is_fetched_and_hostile_text_stays_text(opened):
    page, film = opened.page, opened.page.locator("#play-run")
    film.locator("select").first.select_option(value=HOSTILE.name)
    wait_for_state(page, scenario=HOSTILE.name)
    expect(film.locator(".fp-question")).to_contain_text("${window.__pwned=1} and {{value}}")
    expect(film.locator("img, script")).to_have_count(0)
    assert page.evaluate("[window.__pwned, window.fusescope.run().question]") == [None, HOSTILE.questions[0].question]


@pytest.mark.parametrize("name", ["nothing", "../x", 7])
def test_a_run_that_is_not_there_is_one_sentence(name):
    with pytest.raises(gr.Error, match="Unknown scenario"):
        recorded_runs(FakeSession())(name)
    with pytest.raises(gr.Error, match="No run of"):
        recorded_runs(FakeSession(with_recordings=False))(FakeSession().scenarios()[0].name)


def test_a_fetched_run_is_the_recorded_one():
    session = FakeSession()
    scenario = session.scenarios()[0].name
    assert json.loads(recorded_runs(session)(scenario))["question"] == session.recorded(scenario).question
