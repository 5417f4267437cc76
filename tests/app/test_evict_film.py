"""The film of the Evict tab: which runs it shows, and that it follows the board in a browser."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from evict_fakes import FakeReplays
from evict_samples import HOSTILE, made_run, made_set
from launch import visiting
from play_visits import do, open_tab, query_of, state, wait_for_address, wait_for_state
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
def test_the_tab_plays_the_board_follows_it_and_a_link_gives_the_same_state(browser, plain_url):
    recorded = {run.policy: run for run in Replays(Turns()).recorded("balanced")}
    with visiting(browser, plain_url, query="tab=evict&view=film", ready="#evict-film .fp-card") as visit:
        page, film = visit.page, visit.page.locator("#evict-film")
        expect(film.locator(".fp-badge").first).to_have_text("SIMULATED")
        for name, run in (("LRU", recorded["lru"]), ("SAECache (paper)", recorded["saecache"])):
            card = film.locator(".fp-card", has=page.get_by_role("button", name=name, exact=True))
            expect(card).to_contain_text(f"{100 * run.score().hit_tokens:.1f} %")
            expect(card).to_contain_text(f"of {len(run.evictions.block):,} evictions regretted")
        page.locator("#evict-workload input").click()
        page.get_by_role("option", name="Tool use behind one long prompt (SAECache loses here)").click()
        film.locator(".fp-question", has_text="Tool use behind one long prompt").wait_for()
        with page.expect_download() as started:
            page.locator("#evict-film-page").click()
        assert "tool_use" in Path(started.value.path()).read_text()

        wait_for_state(page, scenario="tool_use")
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
        wait_for_query(page)
        open_tab(page, "Evict")
        wait_for_query(page, *query.split("&"))
        open_tab(page, "Who wins")
        wait_for_query(page, *(part for part in query.split("&") if part != "view=film"))
        # Each side keeps its part of the address.
        assert "sc=tool_use" in query
        with visiting(browser, plain_url, query=link.partition("?")[2], ready="#evict-film .fp-root canvas") as other:
            wait_for_state(other.page, **own)
            expect(other.page.locator("#evict-workload input")).to_have_value(re.compile("Tool use"))
            assert visit.problems == other.problems == []


def wait_for_query(page, *parts):
    """Waits until the address holds these parts, in any order, and no others but the page's own theme."""
    same = """(wanted) => window.location.search.slice(1).split("&").filter((part) => part && !part.startsWith("__theme=")).sort().join("&")
      === wanted.sort().join("&")"""
    page.wait_for_function(same, arg=list(parts))
