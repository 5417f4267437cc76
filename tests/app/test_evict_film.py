"""The film of the Evict tab: which runs it shows, and that it follows the board in a browser."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from evict_fakes import FakeReplays
from evict_samples import HOSTILE, made_run, made_set
from launch import served, visiting
from play_visits import do, open_tab, query_of, state, wait_for_address
from playwright.sync_api import expect

from engine.replays import Replays
from engine.turns import Turns
from viz.panels.evict_board import board_of
from viz.panels.evict_film import film_of, film_runs
from viz.panels.players import unpack


def test_a_film_is_of_the_first_seed_in_reading_order():
    later = tuple(replace(run, seed=1) for run in made_set())
    runs = film_runs(board_of((*later, *reversed(made_set())), "replayed"))
    assert [(run.policy, run.seed) for run in runs] == [("min", 0), ("lru", 0), ("sae_g", 0), ("saecache", 0)]


def test_files_of_other_loads_and_capacities_stay_out():
    runs = film_runs(board_of((made_run("saecache"), made_run("lru", capacity=80), replace(made_run("lpc"), workload="other")), "file"))
    assert [run.policy for run in runs] == ["saecache"]


@pytest.mark.parametrize(
    ("mode", "origin", "badge"), [("live", "replayed", "live"), ("live", "file", "replay"), ("simulated", "replayed", "simulated")]
)
def test_the_film_says_where_its_numbers_come_from(mode, origin, badge):
    value, _ = film_of(FakeReplays(), board_of(tuple(replace(run, mode=mode) for run in made_set()), origin))
    assert unpack(value)["run"]["provenance"]["mode"] == badge


def test_the_page_to_take_along_holds_the_same_film_and_a_safe_name():
    board = board_of(tuple(replace(run, workload=HOSTILE) for run in made_set()), "file")
    value, path = film_of(FakeReplays(), board)
    page = Path(path).read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["run"] == unpack(value)["run"] and re.fullmatch(r"[\w.-]+\.html", Path(path).name)
    assert "<img src=x" not in page


@pytest.mark.browser
def test_the_tab_plays_the_board_and_follows_it(browser):
    recorded = {run.policy: run for run in Replays(Turns()).recorded("balanced")}
    with served("fakes:FakeSession") as url, visiting(browser, url) as visit:
        page = visit.page
        page.get_by_role("tab", name="Evict", exact=True).click()
        page.locator("#evict-results tbody tr").first.wait_for()
        page.get_by_role("tab", name="Film", exact=True).click()
        film = page.locator("#evict-film")
        film.locator(".fp-card").first.wait_for()
        assert film.locator(".fp-badge").first.inner_text() == "SIMULATED"
        last = recorded["lru"]
        for name, run in (("LRU", last), ("SAECache (paper)", recorded["saecache"])):
            card = film.locator(".fp-card", has=page.get_by_role("button", name=name, exact=True)).inner_text()
            assert f"{100 * run.score().hit_tokens:.1f} %" in card and f"of {len(run.evictions.block):,} evictions regretted" in card
        page.locator("#evict-workload input").click()
        page.get_by_role("option", name="Tool use behind one long prompt (SAECache loses here)").click()
        film.locator(".fp-question", has_text="Tool use behind one long prompt").wait_for()
        with page.expect_download() as started:
            page.locator("#evict-film-page").click()
        assert "tool_use" in Path(started.value.path()).read_text() and visit.problems == []


@pytest.mark.browser
def test_a_link_to_the_film_gives_the_same_state_and_each_side_keeps_its_part_of_the_address(browser):
    ready = "#evict-film .fp-root canvas"
    with served("fakes:FakeSession") as url, visiting(browser, url, query="tab=evict&view=film&sc=tool_use", ready=ready) as visit:
        page = visit.page
        expect(page.locator("#evict-workload input")).to_have_value(re.compile("Tool use"))
        for action in (
            {"type": "toggleMethod", "method": "min"},
            {"type": "method", "method": "lru"},
            {"type": "seek", "time": 123},
            {"type": "panel", "panel": "text"},
            {"type": "lang", "lang": "de"},
        ):
            do(page, **action)
        wait_for_address(page, "lang=de")
        own, query, link = state(page), query_of(page), page.evaluate("() => window.fusescope.link()")
        assert own["tab"] == "evict" and own["scenario"] == "tool_use" and own["time"] == 123 and own["panel"] == "text"
        assert "tab=evict" in query and "view=film" in query
        open_tab(page, "Fuse")
        page.wait_for_function("() => !window.location.search.includes('evict')")
        assert query_of(page) == ""
        open_tab(page, "Evict")
        wait_for_address(page, "t=123")
        assert sorted(query_of(page).split("&")) == sorted(query.split("&"))
        open_tab(page, "Who wins")
        page.wait_for_function("() => !window.location.search.includes('view=')")
        with visiting(browser, url, query=link.partition("?")[2], ready=ready) as other:
            other.page.wait_for_function("() => window.fusescope.state().time === 123")
            assert state(other.page) == own and visit.problems == other.problems == []
