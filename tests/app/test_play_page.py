"""The Play tab in a browser, over the fake session: the run of the Fuse tab as a film, other recorded runs, the tour."""

import json

import gradio as gr
import pytest
from fakes import FakeSession
from launch import served, visiting
from playwright.sync_api import expect

from viz.panels.play import recorded_runs

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url():
    with served("fakes:FakeSession") as address:
        yield address


def opened(page):
    page.get_by_role("tab", name="Play", exact=True).click()
    page.locator("#play-run canvas").first.wait_for()
    return page.locator("#play-run")


@pytest.mark.parametrize(("width", "theme"), [(1920, "light"), (390, "dark")])
def test_the_run_of_the_fuse_tab_is_shown_with_its_numbers(browser, url, width, theme):
    with visiting(browser, url, width=width, height=1080 if width > 600 else 844, theme=theme) as visit:
        page = visit.page
        question = page.locator("#fuse-banner").get_by_text("Question:").locator("..").inner_text().removeprefix("Question:").strip()
        film = opened(page)
        assert question in film.inner_text() and "REPLAY" in film.inner_text()
        assert page.evaluate("window.fusescope.state().scenario") == FakeSession().scenarios()[0].name
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert visit.problems == []


def test_the_run_is_handed_out_as_one_page_that_plays_by_itself(browser, url, tmp_path):
    with visiting(browser, url) as visit:
        opened(visit.page)
        with visit.page.expect_download() as begun:
            visit.page.locator("#play-page").click()
        alone = tmp_path / "run.html"
        begun.value.save_as(alone)
        question = visit.page.evaluate("window.fusescope.run().question")
        visit.page.goto(alone.as_uri())
        visit.page.locator("canvas").first.wait_for()
        assert visit.page.evaluate("window.fusescope.run().question") == question
        # Nothing but the file itself was asked for.
        assert visit.problems == [f"request to {alone.as_uri()}"]


def test_another_recorded_run_is_fetched_and_hostile_text_stays_text(browser, url):
    hostile = FakeSession().scenarios()[1]
    with visiting(browser, url) as visit:
        page, film = visit.page, opened(visit.page)
        film.locator("select").first.select_option(value=hostile.name)
        page.wait_for_function("name => window.fusescope.state().scenario === name", arg=hostile.name)
        expect(film.locator("img, script")).to_have_count(0)
        assert page.evaluate("window.fusescope.run().question") in film.inner_text()
        assert visit.problems == []


def test_a_live_run_is_shown_when_the_tab_is_opened_again(browser, url):
    with visiting(browser, url) as visit:
        page, film = visit.page, opened(visit.page)
        page.get_by_role("tab", name="Fuse", exact=True).click()
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator("#fuse-banner").get_by_text("LIVE", exact=True).wait_for()
        page.get_by_role("tab", name="Play", exact=True).click()
        film.get_by_text("LIVE", exact=True).first.wait_for()
        assert visit.problems == []


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
