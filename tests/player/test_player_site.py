"""The static site in a browser: pictures, numbers, keys, tour, links, exports."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from player_site import file_server, visiting_player
from playwright.sync_api import expect

from engine.runfile import load_run
from engine.session import as_replay
from engine.types import budget
from viz.figures import words
from viz.player.static import RUNS_DIR

pytestmark = pytest.mark.browser
SERVO = as_replay(load_run(RUNS_DIR / "servo-manual.run.json.gz"))
PWNED = "() => window.__pwned ?? null"


def num_doc_rows(method):
    return int(((method.rows >= SERVO.system_len) & (method.rows < SERVO.question_start)).sum())


def test_opens_on_a_recorded_run_that_says_replay(visit):
    assert visit.text(".fp-badge") == "REPLAY"
    assert visit.text(".fp-question") == SERVO.question
    state = visit.state()
    assert state["methods"] == ["full", "cacheblend", "qcfuse"] and state["method"] == "qcfuse" and state["ratio"] == SERVO.ratio


def test_the_headline_holds_the_runs_numbers(visit):
    method, full = SERVO.method("qcfuse"), SERVO.method("full")
    verdict = visit.text(".fp-verdict")
    for number in (
        words.seconds(method.ttft_s),
        words.seconds(full.ttft_s),
        words.times(full.ttft_s / method.ttft_s),
        f"{SERVO.num_doc_tokens:,}",
    ):
        assert number in verdict


def test_every_number_of_the_tables_is_the_runs(visit):
    visit.page.locator("summary").click()
    rows = visit.page.locator(".fp-tables-panel table").nth(0).locator("tbody tr")
    expect(rows).to_have_count(len(SERVO.methods))
    full = SERVO.method("full")
    for i, method in enumerate(SERVO.methods):
        cells = rows.nth(i).locator("th, td").all_inner_texts()
        assert cells[1:3] == [f"{num_doc_rows(method):,}", words.seconds(method.ttft_s)]
        assert cells[4] == words.times(full.ttft_s / method.ttft_s) and cells[8] == words.size(method.loaded_bytes)
        assert cells[9] == f"{method.quality.kl_to_full:.3f}"
    best = SERVO.method("qcfuse").ranking[:20]
    tokens = visit.page.locator(".fp-tables-panel table").nth(1).locator("tbody tr")
    assert [int(tokens.nth(i).locator("td").nth(1).inner_text().replace(",", "")) for i in range(20)] == best.tolist()


def test_the_budget_shows_the_exact_set_and_says_what_was_measured(visit):
    ranking, chunk = SERVO.method("qcfuse").ranking, SERVO.chunks[10]
    for ratio in (0.1, 0.45, 1.0, 0.0):
        visit.do(type="ratio", ratio=ratio)
        visit.do(type="token", token=chunk.start)
        num = budget(ratio, SERVO.num_doc_tokens)
        assert f"exactly {num:,} of {SERVO.num_doc_tokens:,}" in visit.text(".fp-budget-exact")
        inside = np.count_nonzero((ranking[:num] >= chunk.start) & (ranking[:num] < chunk.stop))
        expect(visit.page.locator(".fp-token-recomputed")).to_have_count(int(inside))
    assert "No time was measured at 0 %" in visit.text(".fp-budget-time")
    visit.do(type="ratio", ratio=0.15)
    assert "a straight line between measured points" in visit.text(".fp-budget-time")
    visit.page.locator(".fp-back").click()
    visit.drawn()
    assert visit.state()["ratio"] == SERVO.ratio and not visit.page.locator(".fp-back").is_visible()


def test_pointing_at_the_map_tells_the_token_and_who_chose_it(visit):
    box = visit.page.locator(".fp-map").bounding_box()
    visit.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.4)
    visit.drawn()
    marked = visit.page.locator(".fp-token-current")
    position = int(marked.get_attribute("data-p"))
    method = SERVO.method("qcfuse")
    rank = int(np.flatnonzero(method.ranking == position)[0]) + 1
    assert f"rank {rank:,} of {SERVO.num_doc_tokens:,}" in visit.text(".fp-token-card")
    chose = [m.method for m in SERVO.methods if m.ranking is not None and position in m.rows]
    rivals = [m for m in SERVO.methods if 0 < num_doc_rows(m) < SERVO.num_doc_tokens]
    assert f"Chosen by {len(chose)} of {len(rivals)} methods" in visit.text(".fp-token-card")
    visit.page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.4)
    visit.page.mouse.move(5, 5)
    visit.drawn()
    assert visit.state()["token"] == position
    layer, card = visit.state()["layer"], visit.text(".fp-token-card")
    done = max(s.end_s for s in method.spans if s.layer == layer and s.stage in ("recompute", "correct"))
    assert f"layer {layer}: read" in card and words.seconds(done) in card


def test_answers_appear_when_their_lane_ends(visit):
    visit.do(type="seek", time=SERVO.method("cacheblend").ttft_s - 0.02)
    cards = visit.page.locator(".fp-card")
    assert [cards.nth(i).locator(".fp-answer").inner_text() for i in range(3)] == ["", "", ""]
    visit.do(type="seek", time=SERVO.method("qcfuse").ttft_s + 0.02)
    texts = [cards.nth(i).locator(".fp-answer").inner_text() for i in range(3)]
    assert texts[0] == "" and texts[1] != "" and SERVO.method("qcfuse").answer.startswith(texts[2]) and texts[2]
    visit.do(type="seek", time=99)
    assert [cards.nth(i).locator(".fp-answer").inner_text() for i in range(3)] == [
        SERVO.method(m).answer for m in ("full", "cacheblend", "qcfuse")
    ]
    for i, name in enumerate(("full", "cacheblend", "qcfuse")):
        differs = SERVO.method(name).answer.split() != SERVO.method("full").answer.split()
        assert cards.nth(i).locator(".fp-differs").count() == int(differs)


def test_how_it_was_measured_is_told(visit):
    visit.page.locator(".fp-source").click()
    told = visit.text(".fp-overlay-measured")
    for part in (
        SERVO.provenance.model,
        SERVO.provenance.device,
        SERVO.provenance.created,
        SERVO.provenance.page_cache,
        "median of 3 rounds",
    ):
        assert part in told
    visit.page.keyboard.press("Escape")
    assert not visit.page.locator(".fp-overlay-measured").is_visible()


def test_a_link_gives_the_same_state(browser, site, visit):
    visit.page.locator("select").first.select_option("granary-inquiry")
    visit.wait(lambda: visit.state()["scenario"] == "granary-inquiry")
    visit.do(type="toggleMethod", method="qcfuse+primed-mean")
    visit.do(type="method", method="qcfuse+primed-mean")
    visit.do(type="ratio", ratio=0.22)
    visit.do(type="token", token=700)
    visit.do(type="window", **{"from": 600, "to": 900})
    visit.do(type="seek", time=0.4321)
    visit.do(type="panel", panel="text")
    visit.do(type="theme", theme="dark")
    visit.do(type="lang", lang="de")
    visit.do(type="contrast")
    visit.wait(lambda: "contrast=1" in visit.page.url)
    query = visit.page.url.partition("?")[2]
    with visiting_player(browser, site, query) as other:
        other.wait(lambda: other.state()["scenario"] == "granary-inquiry")
        other.drawn()
        assert other.state() == visit.state() and other.problems == []
        other.wait(lambda: other.page.url == visit.page.url)
        expect(other.page.locator(".fp-root")).to_have_attribute("lang", "de")


def test_a_link_with_nonsense_opens_what_there_is(browser, site):
    query = "sc=nowhere&m=evil,full&look=evil&r=7&tok=999999&t=-3&z=9-1&scene=99&panel=evil&theme=evil&lang=xx&speed=3"
    with visiting_player(browser, site, query) as visit:
        assert visit.state()["methods"] == ["full", "cacheblend", "qcfuse"] and visit.state()["ratio"] == SERVO.ratio
        assert visit.problems == []


def test_the_copied_link_is_the_address(visit):
    visit.do(type="token", token=321)
    visit.wait(lambda: "tok=321" in visit.page.url)
    visit.page.get_by_role("button", name="Copy link").click()
    visit.page.get_by_text("Copied.").wait_for()
    assert visit.page.evaluate("() => navigator.clipboard.readText()") == visit.page.url


def test_every_language_fits_every_width(browser, site):
    with visiting_player(browser, site, "tok=1500", width=390, height=844) as visit:
        for width in (390, 1280, 1920):
            visit.page.set_viewport_size({"width": width, "height": 844})
            for lang in ("en", "es", "de", "zh"):
                visit.do(type="lang", lang=lang)
                expect(visit.page.locator(".fp-root")).to_have_attribute("lang", lang)
                visit.wait(lambda width=width: visit.page.evaluate("() => document.documentElement.scrollWidth") <= width)
        assert visit.problems == []


def test_downloads_hold_the_run(visit):
    page = visit.page

    def content(name):
        with page.expect_download() as started:
            page.locator(".fp-export-panel").get_by_text(name, exact=True).click()
        return Path(started.value.path()).read_bytes()

    assert content("Run file") == (RUNS_DIR / "servo-manual.run.json.gz").read_bytes()
    trace = json.loads(content("Chrome trace"))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(spans) == sum(len(method.spans) for method in SERVO.methods)
    assert max(event["ts"] + event["dur"] for event in spans) == pytest.approx(max(s.end_s for m in SERVO.methods for s in m.spans) * 1e6)
    rows = list(csv.DictReader(io.StringIO(content("CSV").decode("utf-8-sig"))))
    assert [float(row["ttft_s"]) for row in rows] == [method.ttft_s for method in SERVO.methods]
    assert [row["answer"] for row in rows] == [method.answer for method in SERVO.methods]
    svg = content("SVG").decode()
    for name in ("full", "cacheblend", "qcfuse"):
        assert f">{words.seconds(SERVO.method(name).ttft_s)}</text>" in svg
    assert SERVO.question in svg and "REPLAY" in svg
    assert content("PNG").startswith(b"\x89PNG")
    assert b"fusescope" in content("One-file page")


def test_a_run_that_cannot_be_read_leaves_the_one_before(visit):
    visit.page.route("**/runs/tidal-power.json", lambda route: route.fulfill(status=404, body=""))
    visit.page.locator("select").first.select_option("tidal-power")
    visit.page.locator(".fp-reason").get_by_text("could not be read").wait_for()
    assert visit.state()["scenario"] == "servo-manual" and visit.text(".fp-question") == SERVO.question
    visit.wait(lambda: any("404" in problem for problem in visit.problems))
    visit.problems[:] = [problem for problem in visit.problems if "404" not in problem]


def test_a_server_that_is_gone_does_not_stop_the_picture(browser, site):
    with visiting_player(browser, site) as visit:
        visit.page.context.set_offline(True)
        visit.do(type="seek", time=0.5)
        assert visit.state()["time"] == 0.5
        visit.do(type="scene", scene=9)
        visit.page.locator(".fp-reason").get_by_text("could not be read").wait_for()
        visit.scene(8, "servo-manual")
        assert "One clock" in visit.text(".fp-scene-title")


def test_hostile_texts_are_shown_as_text(browser, hostile_folder):
    with file_server(hostile_folder) as url, visiting_player(browser, url) as visit:
        for number in range(1, 11):
            visit.do(type="scene", scene=number)
        visit.do(type="escape")
        visit.page.locator("summary").click()
        visit.page.locator(".fp-source").click()
        visit.page.keyboard.press("Escape")
        for token in (0, 30, 60, 120, 300):
            visit.do(type="token", token=token)
        assert "${window.__pwned=1}" in visit.text(".fp-question")
        heads = visit.page.locator(".fp-chunk-head").inner_text()
        assert "<img src=x onerror=window.__pwned=4>" in heads or "العربية" in heads or "One long line" in heads
        expect(visit.page.locator(".fp-root img, .fp-root script, .fp-root b > img")).to_have_count(0)
        assert visit.page.evaluate(PWNED) is None and visit.problems == []


def test_two_visitors_do_not_mix(browser, site, visit):
    with visiting_player(browser, site) as other:
        other.do(type="token", token=99)
        other.page.keyboard.press("t")
        visit.drawn()
        assert visit.state()["token"] is None and visit.state()["scene"] == 0


def test_the_text_twin_of_the_map_is_in_reach(visit):
    for selector in (".fp-map", ".fp-timeline", ".fp-budget-frame canvas"):
        node = visit.page.locator(selector)
        assert node.get_attribute("role") and len(node.get_attribute("aria-label")) > 10
    visit.page.locator(".fp-map").focus()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("ArrowRight")
    visit.drawn()
    assert visit.state()["token"] == 1
    assert re.search(r"system prompt", visit.text(".fp-token-card"))
