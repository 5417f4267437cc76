"""One exported file, opened from a disk with no network; and the player inside a host page, as the app's component mounts it."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import ALL_METHODS, example_request, fake_run, injection_scenario
from player_host import write_host
from player_site import visiting_player
from playwright.sync_api import expect

from engine.runfile import dump_run, load_run
from engine.session import as_replay
from viz.player.component import component_value
from viz.player.export import export_html
from viz.player.static import RUNS_DIR

pytestmark = pytest.mark.browser
SERVO = as_replay(load_run(RUNS_DIR / "servo-manual.run.json.gz"))


LIVE = replace(SERVO, provenance=replace(SERVO.provenance, mode="live"))


def written(folder, run, ghost=None):
    path = folder / "run.html"
    path.write_text(export_html(run, ghost=ghost))
    return path.as_uri()


def test_an_exported_file_plays_from_disk_with_no_network(browser, tmp_path):
    # As slow as it gets, so that it still plays whenever it is looked at.
    slow = {"query": "speed=0.02", "offline": True, "motion": "no-preference"}
    with visiting_player(browser, written(tmp_path, LIVE, SERVO), **slow) as visit:
        visit.wait(lambda: 0 < visit.state()["time"] < 2)
        assert visit.state()["scenario"] == SERVO.scenario and visit.text(".fp-question") == SERVO.question
        visit.page.keyboard.press("t")
        for number in range(1, 11):
            visit.drawn()
            assert visit.state()["scene"] == number and "{" not in visit.text(".fp-sentence")
            visit.page.keyboard.press("PageDown")
        for badge, run in (("LIVE", LIVE), ("REPLAY", SERVO)):
            expect(visit.page.locator(".fp-badge").first).to_have_text(badge)
            expect(visit.page.locator(".fp-ghost")).to_contain_text("Same machine, model and question.")
            with visit.page.expect_download() as started:
                visit.page.get_by_text("Run file", exact=True).click()
            assert Path(started.value.path()).read_bytes() == dump_run(run)
            visit.page.keyboard.press("l")
        assert visit.problems == []


def test_an_exported_files_link_opens_the_same_state(browser, tmp_path):
    url = written(tmp_path, SERVO)
    with visiting_player(browser, url, offline=True) as visit:
        visit.do(type="token", token=444)
        visit.do(type="seek", time=0.25)
        link = visit.page.evaluate("() => window.fusescope.link()")
        state = visit.state()
    assert link.startswith(url)
    with visiting_player(browser, url, link.partition("?")[2], offline=True) as again:
        assert again.state() == state and again.problems == []


def test_hostile_texts_in_an_exported_file_are_shown_as_text(browser, tmp_path):
    run = fake_run(injection_scenario().request("q1"), ALL_METHODS)
    with visiting_player(browser, written(tmp_path, run), offline=True) as visit:
        visit.page.locator("summary").click()
        assert visit.page.evaluate("() => window.__pwned ?? null") is None
        assert "<img src=x onerror" in visit.text(".fp-question") and visit.problems == []


@pytest.fixture
def host(tmp_path):
    return write_host(tmp_path / "host.html", [component_value(SERVO, autoplay=False)] * 2)


def test_it_runs_as_the_body_of_a_function_and_two_do_not_mix(browser, host):
    with visiting_player(browser, host, width=1280, height=800) as visit:
        visit.page.evaluate("() => window.hosts[0].player.dispatch({type: 'token', token: 5})")
        visit.drawn()
        assert visit.page.evaluate("() => window.hosts.map((host) => host.player.state().token)") == [5, None]
        expect(visit.page.locator(".fp-map")).to_have_count(2)
        visit.page.evaluate("() => { document.getElementById('one').style.display = 'none'; }")
        visit.page.keyboard.press("h")
        visit.drawn()
        assert visit.page.evaluate("() => window.hosts.map((host) => host.player.state().contrast)") == [False, True]
        visit.page.evaluate("() => { const other = document.createElement('button'); document.body.append(other); other.focus(); }")
        visit.page.keyboard.press("h")
        visit.drawn()
        assert visit.page.evaluate("() => window.hosts.map((host) => host.player.state().contrast)") == [False, True]
        assert "?" not in visit.page.url, "a component must not touch the address unless asked to"
        assert visit.problems == []


def test_another_value_shows_another_run_with_a_reason(browser, host):
    reason = "The engine is busy: this is a recorded run."
    other = component_value(fake_run(example_request(), ("full", "reuse", "epic")), reason=reason)
    with visiting_player(browser, host, width=1280, height=800) as visit:
        visit.page.evaluate("(value) => window.put(0, value)", other)
        visit.drawn()
        assert visit.text("#one .fp-question") == example_request().question
        assert visit.text("#one .fp-reason") == reason
        assert visit.text("#one .fp-badge") == "LIVE"
        assert visit.text("#two .fp-question") == SERVO.question
        visit.page.evaluate("() => window.hosts[1].player.destroy()")
        visit.page.keyboard.press("h")
        visit.drawn()
        assert visit.page.evaluate("() => window.hosts.map((host) => host.player.state().contrast)") == [True, False]
        assert visit.problems == []


def test_a_hostile_value_is_shown_as_text(browser, host):
    value = component_value(fake_run(injection_scenario().request("q1")), reason="<img src=x onerror=window.__pwned=9> ${1+1}")
    with visiting_player(browser, host, width=1280, height=800) as visit:
        visit.page.evaluate("(value) => window.put(0, value)", value)
        visit.drawn()
        assert visit.text("#one .fp-reason") == "<img src=x onerror=window.__pwned=9> ${1+1}"
        assert visit.page.evaluate("() => window.__pwned ?? null") is None and visit.problems == []
