"""Callbacks over a fake session: an error is a sentence, and the run before it stays."""

import os
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest
from fake_runs import example_request, fake_run
from fakes import FakeRunFiles, FakeSession

from engine.errors import BadRunFile
from viz.panels.address import UNSEEN
from viz.panels.api import make_compare
from viz.panels.fuse_callbacks import NUM_SHOWN, FuseCallbacks
from viz.panels.fuse_flip_callbacks import FlipCallbacks
from viz.panels.page import build, launch_options
from viz.panels.players import pack, unpack
from viz.panels.run_download import file_name, write_run

FORM = ("Who designed the tidal gate of Orsund?", None, 0.3, ["full", "qcfuse"], "system", 32, 0.0, 0, 2)


@pytest.fixture(autouse=True)
def warnings(monkeypatch):
    """Collects what would be shown as toasts."""
    shown = []
    monkeypatch.setattr(gr, "Warning", lambda message, **_: shown.append(message))
    return shown


@pytest.fixture
def calls():
    return FuseCallbacks(FakeSession(), FakeRunFiles())


def skipped(value: object) -> bool:
    return isinstance(value, dict) and value.get("__type__") == "update" and len(value) == 1


def test_a_run_streams_statuses_and_then_the_run(calls, monkeypatch):
    monkeypatch.setattr("viz.panels.live.MIN_GAP_S", 0.0)
    status, job, run_button, stop_button = calls.begin("harbour", *FORM)
    assert unpack(status)["kind"] == "busy" and not run_button.interactive and stop_button.interactive
    yields = list(calls.run(job))
    assert all(skipped(run) for _, run in yields[:-1]) and len(yields) > 5
    assert unpack(yields[2][0])["answers"][0][0] == "Full prefill"
    assert unpack(yields[-1][0])["kind"] == "done" and yields[-1][1].provenance.mode == "live"
    assert calls.session.num_closed == 1


def test_statuses_are_thinned_but_the_run_always_comes(calls):
    job = calls.begin("harbour", *FORM)[1]
    yields = list(calls.run(job))
    assert len(yields) < 5 and not skipped(yields[-1][1])


def test_bad_input_never_reaches_the_engine(calls, warnings):
    status, job, *buttons = calls.begin("harbour", "", *FORM[1:])
    assert job is None and unpack(status) == {"kind": "error", "mark": "!", "message": warnings[0], "fraction": 0.0, "answers": []}
    assert all(skipped(button) for button in buttons)
    assert all(skipped(value) for value in next(calls.run(None)))
    assert "Unknown scenario" in unpack(calls.begin("nope", *FORM)[0])["message"]


def test_an_engine_error_is_its_sentence_and_keeps_the_run(calls, warnings):
    job = calls.begin("harbour", "please fail", *FORM[1:])[1]
    *_, (status, run) = calls.run(job)
    assert skipped(run) and unpack(status)["message"].startswith("The chunk store is full") and warnings
    *_, (status, run) = calls.run(calls.begin("harbour", *FORM)[1])
    assert unpack(status)["kind"] == "done" and not skipped(run)


def test_closing_the_generator_closes_the_session_stream(calls):
    generator = calls.run(calls.begin("harbour", *FORM)[1])
    next(generator)
    generator.close()
    assert calls.session.num_closed == 1


def test_show_fills_every_output_and_skips_a_run_already_shown(calls):
    run = fake_run(example_request())
    values = calls.show(run, None, None)
    assert len(values) == NUM_SHOWN and values[1] is run and unpack(values[0])["badge"] == "LIVE"
    assert "measured at 0.30" in values[3].label
    assert len(calls.show(run, run, None)) == NUM_SHOWN and all(skipped(value) for value in calls.show(run, run, None))
    assert unpack(calls.show(None, None, None)[0])["badge"] == "NO RUN"


def test_pictures_wait_while_a_link_leads_to_another_tab(calls):
    run = fake_run(example_request())
    assert len(calls.open(run, UNSEEN, None)) == NUM_SHOWN and all(skipped(value) for value in calls.open(run, UNSEEN, None))
    assert calls.open(run, None, None)[1] is run
    assert calls.show(run, UNSEEN, None)[1] is run, "another event draws them"
    flip = FlipCallbacks(calls.session)
    assert all(skipped(value) for value in flip.show_if_seen(None, UNSEEN)) and len(flip.show_if_seen(None, run)) == len(flip.show(None))


def test_another_ratio_redraws_the_choices_of_all_methods_and_another_method_does_not(calls):
    run = fake_run(example_request(), ("full", "qcfuse", "epic"))
    assert len(calls.look(run, "epic", 0.3)) == 5
    note, *_, agreement, overlap = calls.preview(run, "epic", 0.1)
    assert "EPIC for ratio 0.10" in unpack(note) and "ratio 0.10" in agreement.layout.title.text and overlap.data


def test_scenario_brings_question_chunks_and_recording(calls, warnings):
    _, question, chunks, run, status = calls.choose_scenario("injection")
    assert run.provenance.mode == "replay" and question.value == run.question and len(unpack(chunks)["items"]) == 3
    assert "Recorded run" in unpack(status)["message"]
    bare = FuseCallbacks(FakeSession(with_recordings=False), FakeRunFiles())
    assert bare.choose_scenario("harbour")[3] is None
    assert "Unknown scenario" in unpack(calls.choose_scenario("nope")[4])["message"] and warnings


def test_a_broken_recording_does_not_block_its_scenario(calls, monkeypatch, warnings):
    def broken(_: str) -> None:
        raise BadRunFile("The run file is cut short.")

    monkeypatch.setattr(calls.session, "recorded", broken)
    _, question, _, run, status = calls.choose_scenario("harbour")
    assert run is None and question.choices and unpack(status)["message"] == "The run file is cut short."


def test_models_load_or_stay(calls, warnings):
    *_, (status, line) = calls.load_model("Qwen/Qwen3-0.6B")
    assert unpack(status)["kind"] == "done" and "SmolLM2" in line
    *_, (status, _) = calls.load_model("nobody/nothing")
    assert "the current one stays" in unpack(status)["message"] and calls.session.model == "Qwen/Qwen3-0.6B"
    assert "empty" in unpack(next(calls.load_model(None))[0])["message"]


def test_run_files_open_as_replay_and_bad_ones_are_refused(calls, warnings):
    run = fake_run(example_request())
    data = calls.files.dump_run(run)
    assert calls.open_file(data)[1].provenance.mode == "replay"
    status, kept = calls.open_file(b"rubbish")
    assert skipped(kept) and "not a run file" in unpack(status)["message"]


def test_stopped_and_broken_off_have_their_own_sentences(calls):
    status, job, run_button, stop_button = calls.stopped()
    assert unpack(status)["message"].startswith("Stopped") and job is None and not run_button.interactive and not stop_button.interactive
    again, run_button, stop_button = calls.settled()
    assert again == status and run_button.interactive and not stop_button.interactive
    assert skipped(calls.ended_early(None))
    assert "broke off" in unpack(calls.ended_early(calls.begin("harbour", *FORM)[1]))["message"]


def test_download_is_named_after_the_run_and_old_files_go(tmp_path):
    run = replace(fake_run(example_request()), scenario="../<evil> name")
    path = write_run(FakeRunFiles(), run, tmp_path)
    assert file_name(run) == "fusescope-evil-name-2026-11-29-10-00.run.json.gz" and path.endswith(file_name(run))
    os.utime(Path(path).parent, (0, 0))
    write_run(FakeRunFiles(), replace(run, scenario="next"), tmp_path)
    assert not list(tmp_path.rglob("*evil*")) and write_run(FakeRunFiles(), None, tmp_path) is None


def test_api_returns_numbers_and_raises_sentences():
    run = make_compare(FakeSession())
    *told, result = run("harbour", "Who designed the tidal gate of Orsund?", 0.3, "full, qcfuse")
    assert all(set(line) == {"status", "fraction", "num_ahead"} for line in told)
    assert set(result["methods"]) == {"full", "qcfuse"} and result["methods"]["qcfuse"]["num_recomputed"] > 0
    with pytest.raises(gr.Error, match="question is empty"):
        list(run("harbour", " "))


def test_page_builds_with_a_bounded_engine_lane_and_three_public_endpoints():
    page = build(FakeSession(), FakeRunFiles())
    engine = [fn for fn in page.fns.values() if fn.concurrency_id == "engine"]
    # Several may wait at once: the session runs them one by one and tells each its place.
    assert len(engine) > 4 and {fn.concurrency_limit for fn in engine} == {16}
    assert list(page.get_api_info()["named_endpoints"]) == ["/answer", "/compare", "/replay"]
    options = launch_options()
    assert options["run_history"] is False and options["ssr_mode"] is None
    assert all("http" not in sheet for sheet in options["theme"]._stylesheets)


def test_values_of_players_are_flat_and_hold_no_plain_text():
    value = pack({"text": "${1+1} <b>"})
    assert set(value) == {"b64"} and unpack(value) == {"text": "${1+1} <b>"}
    assert not set("${}<>") & set(value["b64"])
