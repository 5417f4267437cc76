"""Where a request of the Fuse tab runs: the selector, what the form makes of it, and a server's run in every picture."""

from dataclasses import replace

import gradio as gr
import pytest
from fake_runs import example_request, fake_run
from fake_sglang import FakeSGLang, lane, serving
from fakes import FakeRunFiles, FakeSession
from launch import free_port
from worlds import lighthouse, tiny_runtime

from engine.errors import BadRequest
from engine.serving.sglang_lane import PREFIX_CACHE
from viz.panels.fuse_callbacks import FuseCallbacks
from viz.panels.fuse_flip_view import flip_job
from viz.panels.fuse_view import finished, method_view, preview_note, run_view
from viz.panels.page import build
from viz.panels.place import BUILT_IN, SERVER, server_methods
from viz.panels.players import unpack
from viz.panels.tables import counts_table

FORM = ("Who designed the tidal gate of Orsund?", None, 0.3, ["full", "qcfuse"], "system", 8, 0.0, 0, 1)


@pytest.fixture(autouse=True)
def warnings(monkeypatch):
    """Collects what would be shown as toasts."""
    shown = []
    monkeypatch.setattr(gr, "Warning", lambda message, **_: shown.append(message))
    return shown


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return tiny_runtime(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="module")
def session(runtime):
    with serving(FakeSGLang().app()) as url:
        yield FakeSession(sglang=lane(url, lambda: runtime))


@pytest.fixture(scope="module")
def run(session):
    """A run by the server."""
    return session.sglang.run(lighthouse(repeats=3), ("full", "reuse", "qcfuse", PREFIX_CACHE))


def shown(page, elem_id):
    return next(c["props"] for c in page.config["components"] if c["props"].get("elem_id") == elem_id)


def test_the_selector_is_there_only_where_the_settings_name_a_server(session):
    without, with_server = build(FakeSession()), build(session)
    assert shown(without, "fuse-place")["visible"] is False and len(shown(without, "fuse-place")["choices"]) == 1
    place = shown(with_server, "fuse-place")
    assert place["visible"] is True and place["value"] == BUILT_IN
    assert [label for label, _ in place["choices"]] == ["Built-in engine", session.sglang.label]
    assert shown(with_server, "fuse-prefix-cache")["visible"] is False


def test_a_form_says_where_it_runs_and_prefix_caching_is_the_servers():
    assert server_methods(BUILT_IN, ("full",), True) == server_methods(SERVER, ("full",), False) == ("full",)
    assert server_methods(SERVER, ("full",), True) == ("full", PREFIX_CACHE)
    for place in ("http://elsewhere:1", None, 3):
        with pytest.raises(BadRequest, match="Unknown place"):
            server_methods(place, ("full",), True)


def test_a_request_goes_where_the_form_says(session):
    calls = FuseCallbacks(session, FakeRunFiles())
    for place, badge in ((BUILT_IN, None), (SERVER, "SGLang")):
        job = calls.begin("harbour", *FORM, place, True)[1]
        *_, (status, made) = calls.run(job)
        assert made.provenance.served_by == badge and unpack(status)["kind"] == "done"
        assert (made.method(PREFIX_CACHE) is not None) == bool(badge)


def test_no_server_and_a_lost_one_are_a_sentence_and_the_built_in_engine_goes_on(runtime, warnings):
    for session, words in (
        (FakeSession(), "No SGLang server is named here"),
        (FakeSession(sglang=lane(f"http://127.0.0.1:{free_port()}", lambda: runtime)), "does not answer"),
    ):
        calls = FuseCallbacks(session, FakeRunFiles())
        *_, (status, _) = calls.run(calls.begin("harbour", *FORM, SERVER, True)[1])
        assert unpack(status)["kind"] == "error" and words in unpack(status)["message"] and words in warnings[-1]
        *_, (status, made) = calls.run(calls.begin("harbour", *FORM, BUILT_IN, True)[1])
        assert unpack(status)["kind"] == "done" and made.provenance.served_by is None


def test_a_servers_run_is_badged_and_names_both_times(run):
    view = run_view(run)
    assert (view.banner["badge"], view.banner["server"]) == ("LIVE", "SGLang")
    assert "SGLang 0.5.23" in view.banner["details"] and "TTFT at the client and inside the server" in view.banner["details"]
    assert all("at the client (" in card["speed"] and "inside the server)" in card["speed"] for card in view.cards["cards"])
    names = [row[0] for row in view.counts["rows"]]
    assert names[:2] == ["Time to first token, at the client", "Time to first token, inside the server"]
    assert finished(run)["message"].endswith("measured just now by SGLang.")
    assert "at the client" in view.ttft.layout.title.text.replace("<br>", " ")
    assert "inside the server" in [trace.name for trace in view.ttft.data]


def test_what_a_server_does_not_give_is_said_in_words(run):
    view, fused = run_view(run), method_view(run, "qcfuse")
    assert "does not give out" in view.banner["notices"][0] and "KL" in view.banner["notices"][0]
    assert "keys and values" in _words(view.kv) and view.kv.data == ()
    assert "scores" in _words(fused.attention) and fused.attention.data == ()
    assert "how it ranked" in fused.top["reason"] and "how it ranked" in preview_note(run, "qcfuse", 0.5)
    assert "times layer by layer" in view.timeline.layout.title.text.replace("</span><br><span style='font-size:13px'>", " ")
    assert [facts[1] for card in view.cards["cards"] for facts in card["facts"] if facts[0] in ("Gold NLL", "KL to full")] == ["–"] * 8
    # What has no scores anywhere is not blamed on the server.
    assert "does not rank" in method_view(run, "reuse").top["reason"]


def _words(figure):
    return " ".join(a.text for a in figure.layout.annotations).replace("<br>", " ")


def test_times_that_the_server_did_not_tell_are_not_made_up(run):
    untold = replace(run, methods=tuple(replace(method, server_ttft_s=None, spans=()) for method in run.methods))
    view = run_view(untold)
    assert "not told; start it with --enable-metrics" in counts_table(untold)["rows"][1]
    assert not any("inside the server" in card["speed"] for card in view.cards["cards"])
    assert "inside the server" not in [trace.name for trace in view.ttft.data] and "times layer by layer" in _words(view.timeline)


def test_a_run_that_fused_nothing_has_read_no_chunk_cache(session):
    plain = session.sglang.run(lighthouse(), ("full", PREFIX_CACHE))
    assert counts_table(plain)["note"].startswith("No chunk cache was read in this run.")
    assert all(chunk["cache"] == "no cache read" for chunk in method_view(plain, "full").text["chunks"])


def test_prefix_caching_pays_for_no_chunk(run):
    rows = {row[0]: row[1:] for row in counts_table(run)["rows"]}
    assert rows["Chunks cached"][-1] == rows["One-off cost of the caches"][-1] == rows["Break-even"][-1] == "–"


def test_a_second_question_is_compared_by_one_engine():
    own, session = fake_run(example_request()), FakeSession()
    by_server = replace(own, provenance=replace(own.provenance, versions={"sglang": "0.5.23"}))
    asked = (session.scenario("harbour").questions[1].question, "qcfuse", session)
    assert flip_job(own, *asked).request_a is None
    assert flip_job(by_server, *asked).request_a is not None, "the built-in engine answers question A too"
