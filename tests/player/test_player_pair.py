"""Live over recorded, two questions, links of a Space and the word OFFLINE: the player with more than one run at hand."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import example_request, fake_run
from launch import WAIT_MS
from player_host import write_host
from player_site import visiting_player

from viz.figures import words
from viz.player.component import component_value

pytestmark = pytest.mark.browser
METHODS = ("full", "epic", "qcfuse")
RECORDED = fake_run(example_request(), METHODS, mode="replay")
LIVE = fake_run(example_request(), METHODS, slow=1.7)
ELSEWHERE = replace(RECORDED, provenance=replace(RECORDED.provenance, device="Other <b>GPU</b>", num_threads=64), question="Another one?")
SECOND = fake_run(replace(example_request(), question="Which of the twelve notes names a year?"), ("qcfuse",))


def visiting_host(browser, tmp_path, value, **options):
    url = write_host(tmp_path / "host.html", [value, component_value(RECORDED, autoplay=False)])
    return visiting_player(browser, url, **{"width": 1280, "height": 800, **options})


def first(visit, call):
    return visit.page.evaluate(f"() => window.hosts[0].player.{call}")


def press(visit, key):
    visit.page.locator("#one .fp-map").first.focus()
    visit.page.keyboard.press(key)
    visit.drawn()


def test_a_live_run_lies_over_the_recorded_one_and_l_changes_places(browser, tmp_path):
    with visiting_host(browser, tmp_path, component_value(LIVE, ghost=RECORDED, autoplay=False)) as visit:
        assert visit.text("#one .fp-badge") == "LIVE"
        line = visit.text("#one .fp-ghost")
        assert line.startswith("Outlined: the recorded run") and RECORDED.provenance.created in line and "Same machine" in line
        assert not visit.page.locator("#two .fp-ghost").is_visible()
        visit.page.evaluate("() => window.hosts[0].player.dispatch({ type: 'token', token: 50 })")
        press(visit, "l")
        assert visit.text("#one .fp-badge") == "REPLAY" and visit.text("#one .fp-ghost").startswith("Outlined: the live run")
        assert words.seconds(RECORDED.method("qcfuse").ttft_s) in visit.text("#one .fp-verdict")
        assert first(visit, "state().token") == 50, "both are over the same tokens"
        press(visit, "l")
        assert visit.text("#one .fp-badge") == "LIVE" and words.seconds(LIVE.method("qcfuse").ttft_s) in visit.text("#one .fp-verdict")
        assert visit.problems == []


def test_a_recording_of_another_machine_says_so_plainly(browser, tmp_path):
    with visiting_host(browser, tmp_path, component_value(LIVE, ghost=ELSEWHERE, autoplay=False)) as visit:
        line = visit.text("#one .fp-ghost")
        assert "Other <b>GPU</b>" in line and "Another machine: the two times are no comparison." in line and "Another question." in line
        assert visit.page.locator("#one .fp-ghost b").count() == 0 and visit.problems == []


def test_both_runs_of_a_pair_stand_on_one_clock(browser, tmp_path):
    slow = fake_run(example_request(), METHODS, mode="replay", slow=9.0)
    end = max(span.end_s for span in slow.method("qcfuse").spans if span.stage != "decode")
    own = max(span.end_s for method in LIVE.methods for span in method.spans)
    with visiting_host(browser, tmp_path, component_value(LIVE, ghost=slow, autoplay=False)) as visit:
        shown = float(visit.page.locator("#one .fp-timeline").first.get_attribute("aria-valuemax"))
        assert shown == pytest.approx(end, abs=1e-3) and end > own
        assert visit.problems == []


def test_without_a_live_run_l_says_where_one_comes_from(browser, tmp_path):
    with visiting_host(browser, tmp_path, component_value(RECORDED, autoplay=False, engine=True)) as visit:
        press(visit, "l")
        assert "press Run in the Fuse tab" in visit.text("#one .fp-reason")
        assert visit.text("#one .fp-badge") == "REPLAY" and visit.problems == []


def test_the_live_run_is_found_again_after_another_one(browser, tmp_path):
    with visiting_host(browser, tmp_path, component_value(LIVE, ghost=RECORDED, autoplay=False)) as visit:
        visit.page.evaluate("(value) => window.put(0, value)", component_value(RECORDED, autoplay=False))
        visit.drawn()
        assert visit.text("#one .fp-ghost").startswith("Outlined: the live run")
        press(visit, "l")
        assert visit.text("#one .fp-badge") == "LIVE" and visit.problems == []


def test_a_second_question_counts_what_it_changed(browser, tmp_path):
    with visiting_host(browser, tmp_path, component_value(LIVE, flip=SECOND, autoplay=False)) as visit:
        for ratio in (LIVE.ratio, 0.1, 1.0):
            num = max(1, int(ratio * LIVE.num_doc_tokens + 1e-9))
            a, b = (set(run.method("qcfuse").ranking[:num].tolist()) for run in (LIVE, SECOND))
            visit.page.evaluate("(ratio) => window.hosts[0].player.dispatch({ type: 'ratio', ratio })", ratio)
            visit.drawn()
            line = visit.text("#one .fp-flip")
            assert f"both questions: {len(a & b):,}; only for A, shown here: {len(a - b):,}; only for B: {len(b - a):,}." in line
            assert SECOND.question in line and (a != b) == (ratio < 1)
        visit.page.evaluate("() => window.hosts[0].player.dispatch({ type: 'method', method: 'epic' })")
        visit.drawn()
        assert not visit.page.locator("#one .fp-flip").is_visible(), "question B was not answered by this method"
        assert visit.problems == []


def test_questions_over_other_documents_are_not_set_side_by_side(browser, tmp_path):
    tokens = (*SECOND.tokens[: SECOND.system_len], "X", *SECOND.tokens[SECOND.system_len + 1 :])
    other = replace(SECOND, tokens=tokens, token_ids=np.arange(len(tokens), dtype=np.int32))
    with visiting_host(browser, tmp_path, component_value(LIVE, flip=other, autoplay=False)) as visit:
        assert not visit.page.locator("#one .fp-flip").is_visible() and visit.problems == []


def test_on_a_space_the_link_names_the_space(browser, tmp_path):
    base = "https://huggingface.co/spaces/someone/fusescope"
    with visiting_host(browser, tmp_path, component_value(LIVE, autoplay=False, linkBase=base, tab="play")) as visit:
        link = first(visit, "link()")
        assert link.startswith(f"{base}?tab=play&sc=") and "?" not in visit.page.url
        visit.page.locator("#one").get_by_role("button", name="Copy link").click()
        visit.page.locator("#one").get_by_text("opens the recorded run").wait_for()
        assert visit.page.evaluate("() => navigator.clipboard.readText()") == link and visit.problems == []


@pytest.mark.parametrize("present", [False, True])
def test_offline_is_one_line_and_the_picture_goes_on(browser, tmp_path, present):
    with visiting_host(browser, tmp_path, component_value(RECORDED, reason="The engine is busy.", autoplay=False)) as visit:
        if present:
            press(visit, "p")
        first(visit, "setLine('offline')")
        visit.drawn()
        place = "#one .fp-stage" if present else "#one .fp-top"
        assert "OFFLINE: the server does not answer." in visit.text(place) and "The engine is busy." in visit.text(place)
        assert visit.page.locator(f"{place} .fp-badge-offline").is_visible()
        visit.page.evaluate("() => window.hosts[0].player.dispatch({ type: 'seek', time: 0.05 })")
        first(visit, "setLine('back')")
        visit.drawn()
        assert "The server is back." in visit.text(place) and "OFFLINE" not in visit.text(place)
        assert first(visit, "state().time") == 0.05 and visit.problems == []


def test_of_several_players_the_one_that_is_seen_is_spoken_of(browser, tmp_path):
    with visiting_host(browser, tmp_path, component_value(LIVE, autoplay=False)) as visit:
        visit.wait(lambda: visit.page.evaluate("() => window.fusescope === window.hosts[0].player"))
        visit.page.evaluate("() => { document.getElementById('one').style.display = 'none'; }")
        visit.wait(lambda: visit.page.evaluate("() => window.fusescope === window.hosts[1].player"))
        visit.page.evaluate("() => { document.getElementById('one').style.display = ''; window.scrollTo(0, 0); }")
        visit.wait(lambda: visit.page.evaluate("() => window.fusescope === window.hosts[0].player"))
        assert visit.problems == []


SPACE, FRAME = "https://huggingface.co/spaces/someone/fusescope", "https://someone-fusescope.static.hf.space/"
OUTER = f"""<!doctype html><script>window.told = [];
addEventListener("message", ({{ data, origin }}) => window.told.push([data.queryString, origin]));</script>
<iframe src="{FRAME}index.html?t=0.2" style="width:1200px;height:700px"></iframe>"""


def test_in_the_frame_of_a_space_its_page_is_told_of_the_address(browser, site_folder):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.route(f"{SPACE}**", lambda route: route.fulfill(body=OUTER, content_type="text/html"))
    context.route(f"{FRAME}**", lambda route: route.fulfill(path=site_folder / route.request.url.removeprefix(FRAME).partition("?")[0]))
    context.set_default_timeout(WAIT_MS)
    try:
        page = context.new_page()
        page.goto(SPACE)
        frame = page.frame_locator("iframe")
        frame.locator(".fp-map").first.focus()
        frame.locator(".fp-map").first.press("ArrowRight")
        page.wait_for_function("() => window.told.some(([query]) => query.includes('tok=0'))")
        query, origin = page.evaluate("() => window.told.find(([query]) => query.includes('tok=0'))")
        assert "t=0.2" in query.split("&") and origin == FRAME.rstrip("/")
    finally:
        context.close()
