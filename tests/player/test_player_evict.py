"""The Evict view of the static site: its numbers are the recorded runs', one playhead moves it all, the tour says what they show."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from player_site import visiting_player
from playwright.sync_api import expect

from viz import theme
from viz.player.bundle import PLAYER_DIR
from viz.player.static import FILMS_DIR, load_films

pytestmark = pytest.mark.browser
QUERY = "tab=evict&sc=tool_use"
CUT = """() => [...document.querySelectorAll('.fp-card, .fp-sentence')].filter((node) => node.offsetParent
  && node.scrollHeight > node.clientHeight + 4).map((node) => node.textContent)"""
WIDE = "() => document.documentElement.scrollWidth"
SHOWN = ["min", "lru", "sae_g", "saecache"]


@pytest.fixture(scope="module")
def runs():
    return {name: {run.policy: run for run in film.values()} for name, film in load_films(FILMS_DIR).items()}


@pytest.fixture(scope="module")
def tool_use(runs):
    return runs["tool_use"]


@pytest.fixture
def evict(browser, site):
    with visiting_player(browser, site, QUERY) as opened:
        yield opened
        assert opened.problems == []


def rate(run, request):
    r = run.requests
    return f"{100 * r.hit_tokens[: request + 1].sum() / r.prompt_tokens[: request + 1].sum():.1f} %"


def half(run):
    return f"{100 * run.second_half.hit_tokens:.1f} %"


def label(name):
    return theme.policy_style(name).label


def test_a_link_opens_the_load_and_says_simulated(evict, tool_use):
    state = evict.state()
    assert (state["tab"], state["scenario"], state["methods"], state["method"]) == ("evict", "tool_use", SHOWN, "saecache")
    assert state["time"] == tool_use["lru"].num_requests - 1
    assert evict.text(".fp-badge") == "SIMULATED" and evict.text(".fp-question") == "Tool use behind one long prompt"
    assert "cache of 488 blocks of 16 tokens" in evict.text(".fp-source-words")


def test_cards_and_headline_hold_the_rates_so_far(evict, tool_use):
    evict.do(type="method", method="saecache")
    for request in (0, 100, 285):
        evict.do(type="seek", time=request)
        assert_rates(evict, tool_use, request)


def assert_rates(evict, tool_use, request):
    cards = evict.page.locator(".fp-card:visible")
    for i, name in enumerate(SHOWN):
        text = " ".join(cards.nth(i).inner_text().split())
        run = tool_use[name]
        left = run.evictions.request <= request
        assert text.startswith(f"{label(name)} {rate(run, request)}")
        wrong = int(run.evictions.regret[left].sum())
        assert f"{wrong:,} of {left.sum():,} evictions regretted" in text
        assert f"{run.requests.hit_blocks[request]} of {run.requests.prompt_blocks[request]} blocks found" in text
        if name != "lru":
            r, lru = run.requests, tool_use["lru"].requests
            gap = 100 * (r.hit_tokens[: request + 1].sum() - lru.hit_tokens[: request + 1].sum()) / r.prompt_tokens[: request + 1].sum()
            assert f"{abs(gap):.1f} points against LRU" in text
    verdict = evict.text(".fp-verdict")
    assert [rate(tool_use[name], request) in verdict for name in ("saecache", "lru", "min")] == [True] * 3


def test_the_request_and_its_victims_are_the_runs(evict, tool_use):
    run = tool_use["saecache"]
    request = int(np.bincount(run.evictions.request[run.evictions.regret]).argmax())
    evict.do(type="method", method="saecache")
    evict.do(type="seek", time=request)
    facts = evict.text(".fp-request-panel .fp-facts")
    assert f"{run.requests.prompt_tokens[request]:,} tokens, {run.requests.hit_tokens[request]:,} found" in facts
    assert f"Inserted {run.requests.num_inserted[request]:,} Evicted {(run.evictions.request == request).sum():,}" in facts
    evict.page.locator("summary:visible").click()
    evict.drawn()
    rows = evict.page.locator(".fp-tables-panel:visible table").nth(2).locator("tbody tr").all_inner_texts()
    log = run.evictions
    here = log.request == request
    blocks = [int(re.match(r"([\d,]+) ×", row)[1].replace(",", "")) for row in rows]
    assert sum(blocks) == here.sum()
    wrong = sum(num for num, row in zip(blocks, rows, strict=True) if "MIN still had it" in row)
    assert wrong == log.regret[here].sum()
    for row in rows:
        asked = re.search(r"by request ([\d,]+)", row)
        assert (asked is None) == ("never asked for again" in row)
        if asked:
            assert int(asked[1].replace(",", "")) in set(log.suffered[here].tolist())
    alpha = run.snapshots.weights[np.searchsorted(run.snapshots.request, request, side="right") - 1]
    shown = {float(value) for value in re.findall(r"α \w+ = ([\d.e-]+)", " ".join(rows))}
    assert shown and all(np.isclose(alpha, value, rtol=0.01).any() for value in shown)


def test_a_victim_leads_to_the_request_that_suffered(evict, tool_use):
    log = tool_use["lru"].evictions
    evict.do(type="method", method="lru")
    evict.do(type="seek", time=int(log.request[log.regret][0]))
    evict.page.locator(".fp-victims .fp-wrong button").first.click()
    evict.drawn()
    assert evict.state()["time"] in set(log.suffered[log.regret].tolist())


def test_contents_of_the_cache_are_those_of_the_moment_before(evict, tool_use):
    run, request = tool_use["saecache"], 137
    evict.do(type="method", method="saecache")
    evict.do(type="seek", time=request)
    moment = np.searchsorted(run.snapshots.request, request, side="right") - 1
    assert f"as recorded after request {run.snapshots.request[moment]}" in evict.text(".fp-map-panel:visible .fp-note")
    evict.page.locator("summary:visible").click()
    evict.drawn()
    cells = evict.page.locator(".fp-tables-panel:visible table").nth(3).locator("tbody tr").all_inner_texts()
    held = run.snapshots.queues[moment]
    wanted = [*held.tolist(), run.capacity_blocks - int(held.sum())]
    assert [int(row.split("\t")[1].replace(",", "")) for row in cells[:5]] == wanted


def test_keys_step_play_choose_and_zoom(evict):
    page = evict.page
    evict.do(type="seek", time=10)
    for key, time in (("]", 11), ("]", 12), ("[", 11)):
        page.keyboard.press(key)
        evict.drawn()
        assert evict.state()["time"] == time
    page.locator(".fp-timeline:visible").first.focus()
    page.keyboard.press("ArrowRight")
    evict.drawn()
    assert evict.state()["time"] == 12
    page.keyboard.press("m")
    page.keyboard.press("+")
    evict.drawn()
    assert evict.state()["method"] == "min" and evict.state()["zoom"] == [6, 149]
    page.keyboard.press("k")
    evict.wait(lambda: evict.state()["time"] > 14)
    page.keyboard.press("k")
    assert "requests a second" in page.locator(".fp-transport:visible select").evaluate("(node) => node.selectedOptions[0].text")


def test_scrubbing_on_either_picture_seeks(evict, tool_use):
    for number in (0, 1):
        box = evict.page.locator(".fp-timeline:visible").nth(number).bounding_box()
        evict.page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5)
        evict.drawn()
        assert 60 < evict.state()["time"] < 200 and evict.state()["time"] % 1 == 0
        evict.do(type="seek", time=0)


def test_the_address_gives_the_same_state(browser, site, evict):
    evict.do(type="method", method="sae_g")
    evict.do(type="toggleMethod", method="lru")
    evict.do(type="seek", time=123)
    evict.do(type="zoomIn")
    evict.do(type="lang", lang="de")
    evict.do(type="contrast")
    evict.wait(lambda: "contrast=1" in evict.page.url)
    with visiting_player(browser, site, evict.page.url.partition("?")[2]) as other:
        other.wait(lambda: other.state()["scenario"] == "tool_use")
        other.drawn()
        assert other.state() == evict.state() and other.problems == []
        assert other.text(".fp-map-panel:visible h2") == "Was im Cache liegt"


def test_one_page_switches_between_fuse_and_evict(visit):
    assert visit.state()["tab"] == "fuse" and visit.page.locator(".fp-map").is_visible()
    visit.page.get_by_role("button", name="Evict", exact=True).click()
    visit.wait(lambda: visit.state()["tab"] == "evict")
    visit.drawn()
    assert not visit.page.locator(".fp-map").is_visible() and visit.page.locator(".fp-victims").is_visible()
    visit.page.get_by_role("button", name="Fuse", exact=True).click()
    visit.wait(lambda: visit.state()["tab"] == "fuse")
    visit.drawn()
    assert visit.page.locator(".fp-map").is_visible()
    visit.wait(lambda: "tab=" not in visit.page.url.partition("?")[2].replace("tab=fuse", ""))


def test_scenes_state_what_the_recorded_runs_show(browser, site, runs):
    scenes = json.loads((PLAYER_DIR / "evict_tour.json").read_text())
    first = 11
    with visiting_player(browser, site, f"scene={first}") as visit:
        said = {}
        for number, scene in enumerate(scenes, first):
            visit.scene(number, scene["scenario"])
            said[scene["id"]] = visit.text(".fp-sentence")
            assert visit.state()["panel"] == scene["panel"] and not re.search(r"[{}–]", said[scene["id"]])
        assert visit.problems == []
    balanced, tool_use = runs["balanced"], runs["tool_use"]
    run, log = balanced["saecache"], balanced["saecache"].evictions
    assert f"{run.num_requests:,} requests, {run.num_blocks:,} different blocks, room for {run.capacity_blocks:,}: 5 %" in said["evict"]
    wrong = np.bincount(log.request[log.regret], minlength=run.num_requests)
    worst = int(wrong.argmax())
    for number in (worst, int((log.request == worst).sum()), int(wrong[worst])):
        assert f"{number:,}" in said["victims"]
    assert [half(balanced[name]) for name in ("lru", "saecache", "sae_g", "min")] == re.findall(r"[\d.]+ %", said["policies"])
    assert balanced["lru"].second_half.hit_tokens < balanced["saecache"].second_half.hit_tokens < balanced["sae_g"].second_half.hit_tokens
    behind = tool_use["lru"].second_half.hit_tokens - tool_use["saecache"].second_half.hit_tokens
    assert behind > 0, "the scene is about a load on which SAECache loses"
    assert half(tool_use["saecache"]) in said["evict-loses"] and half(tool_use["lru"]) in said["evict-loses"]
    assert f"costs {100 * behind:.2f} points" in said["evict-loses"]


def test_no_scene_about_eviction_is_cut_off(browser, site):
    low = "() => [...document.querySelectorAll('.fp-time-frame')].find((node) => node.offsetParent).getBoundingClientRect().bottom"
    with visiting_player(browser, site, "present=1&scene=11", width=390, height=844) as visit:
        for width, height in ((390, 844), (1280, 720)):
            visit.page.set_viewport_size({"width": width, "height": height})
            for number, scenario in ((11, "balanced"), (12, "balanced"), (13, "balanced"), (14, "tool_use")):
                visit.scene(number, scenario)
                assert visit.page.evaluate(low) <= height + 1, (width, number)
                # On a phone the cards scroll.
                assert width < 600 or visit.page.evaluate(CUT) == [], (width, number)
                assert visit.page.evaluate(WIDE) <= width, (width, number)
        assert visit.problems == []


def test_how_it_was_measured_is_told(evict, tool_use):
    evict.page.locator(".fp-source").click()
    told = evict.text(".fp-overlay-measured")
    run = tool_use["lru"]
    for part in (run.predictor, run.cost, *run.notes, run.commit, "no model ran", "ghost_ratio=1"):
        assert part in told


def saved(visit, name):
    with visit.page.expect_download() as started:
        visit.page.get_by_text(name, exact=True).click()
    return Path(started.value.path()).read_bytes(), started.value.suggested_filename


def test_what_is_taken_along_holds_the_numbers(evict, tool_use):
    evict.do(type="method", method="saecache")
    evict.do(type="seek", time=200)
    rows = list(csv.DictReader(io.StringIO(saved(evict, "CSV")[0].decode("utf-8-sig"))))
    assert [row["policy"] for row in rows] == [run for run in theme.policy_order(tool_use)]
    for row in rows:
        run = tool_use[row["policy"]]
        assert float(row["hit_tokens_second_half"]) == pytest.approx(run.second_half.hit_tokens)
        assert float(row["hit_tokens"]) == pytest.approx(run.score().hit_tokens)
        assert (int(row["num_evicted"]), int(row["num_regretted"])) == (len(run.evictions.block), int(run.evictions.regret.sum()))
    svg = saved(evict, "SVG")[0].decode()
    assert svg.startswith("<svg") and rate(tool_use["saecache"], 200) in svg and "SIMULATED" in svg and "<polyline" in svg
    assert saved(evict, "PNG")[0].startswith(b"\x89PNG")
    data, name = saved(evict, "Run file")
    assert name == "fusescope-tool-use-saecache.cache.json.gz"
    assert data == next(FILMS_DIR.glob("tool_use-saecache-*.cache.json.gz")).read_bytes()
    expect(evict.page.get_by_text("Chrome trace", exact=True)).to_have_count(0)


def test_nothing_is_wider_than_the_screen(browser, site):
    unlabelled = "() => [...document.querySelectorAll('canvas')].filter((n) => n.offsetParent && !n.getAttribute('aria-label')).length"
    with visiting_player(browser, site, f"{QUERY}&theme=light&t=150", width=390, height=844) as visit:
        for width, height, look in ((390, 844, "light"), (1280, 720, "dark")):
            visit.page.set_viewport_size({"width": width, "height": height})
            visit.do(type="theme", theme=look)
            assert visit.page.evaluate(WIDE) <= width and visit.page.evaluate(unlabelled) == 0
        assert visit.problems == []
