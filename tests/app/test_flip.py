"""The second question: ordinary requests through the session, one sentence for what cannot be compared."""

from dataclasses import replace

import gradio as gr
import pytest
from fake_runs import example_request, fake_run, harbour_scenario, injection_scenario
from fakes import FakeSession

from viz.panels.fuse_flip_callbacks import FlipCallbacks
from viz.panels.fuse_flip_view import FlipPair, flip_view, next_questions
from viz.panels.players import unpack

RUN = fake_run(example_request(repeats=1), ("full", "qcfuse", "epic"))
SECOND = "In which year was the tidal gate designed?"


@pytest.fixture(autouse=True)
def warnings(monkeypatch):
    """Collects what would be shown as toasts, and lets every status through."""
    shown = []
    monkeypatch.setattr(gr, "Warning", lambda message, **_: shown.append(message))
    monkeypatch.setattr("viz.panels.live.MIN_GAP_S", 0.0)
    return shown


@pytest.fixture
def calls():
    return FlipCallbacks(FakeSession())


def compared(calls, run, question, method):
    """Returns the pair that a comparison ends with."""
    job = calls.begin(run, question, method)[1]
    *_, (status, pair) = calls.run(job, run)
    assert unpack(status)["kind"] == "done"
    return pair


def test_the_shown_run_is_question_a_and_only_b_is_measured(calls):
    pair = compared(calls, RUN, SECOND, "qcfuse")
    assert pair.a is RUN and pair.b.question == SECOND and [m.method for m in pair.b.methods] == ["qcfuse"]
    assert (pair.b.ratio, pair.b.chunk_context) == (RUN.ratio, RUN.chunk_context) and calls.session.num_closed == 1
    assert [c.chunk_id for c in pair.b.chunks] == [c.chunk_id for c in RUN.chunks]


def test_a_method_that_the_shown_run_lacks_answers_both_questions(calls):
    pair = compared(calls, RUN, SECOND, "cacheblend")
    assert pair.a.question == RUN.question and pair.a.method("cacheblend") and calls.session.num_closed == 2


def test_the_view_counts_what_changed_and_shows_both_answers(calls):
    view = flip_view(compared(calls, RUN, SECOND, "qcfuse"))
    assert "only for A" in view.note and "ratio 0.30" in view.note and view.figure.data
    assert [card["question"] for card in view.cards["cards"]] == [RUN.question, SECOND]
    assert "1907" in view.cards["cards"][1]["same"] and len(view.chunks["rows"]) == len(RUN.chunks)
    same = flip_view(compared(calls, RUN, SECOND, "epic"))
    assert "recomputes the same" in same.note and "does not look at the question" in same.note
    assert "no document token for either" in flip_view(compared(calls, RUN, SECOND, "reuse")).note
    assert flip_view(None)[2:] == (None, None) and unpack(calls.show(None)[2]) is None


@pytest.mark.parametrize(
    ("run", "question", "method", "words"),
    [
        (None, SECOND, "qcfuse", "No run is shown"),
        (RUN, RUN.question + " ", "qcfuse", "Both questions are the same"),
        (RUN, " ", "qcfuse", "question is empty"),
        (RUN, None, "qcfuse", "question is empty"),
        (RUN, SECOND, "nope", "No method is chosen"),
        (RUN, SECOND, ["qcfuse"], "No method is chosen"),
        (replace(RUN, scenario=None), SECOND, "qcfuse", "belongs to no scenario"),
        (replace(RUN, scenario="gone"), SECOND, "qcfuse", "Unknown scenario"),
        (replace(RUN, scenario="injection"), SECOND, "qcfuse", "chunks that its scenario does not have"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(calls, warnings, run, question, method, words):
    status, job, *buttons = calls.begin(run, question, method)
    assert job is None and words in unpack(status)["message"] and warnings and len(buttons) == 2
    assert len(list(calls.run(None, run))) == 1


def test_a_run_of_another_model_is_refused_after_the_measurement(calls, warnings):
    other = replace(RUN, provenance=replace(RUN.provenance, model="another"))
    *_, (status, _) = calls.run(calls.begin(other, SECOND, "qcfuse")[1], other)
    assert "another model" in unpack(status)["message"] and warnings


def test_an_engine_error_is_its_sentence(calls):
    *_, (status, _) = calls.run(calls.begin(RUN, "please fail", "qcfuse")[1], RUN)
    assert "chunk store is full" in unpack(status)["message"]


def test_closing_the_generator_closes_the_session_stream(calls):
    generator = calls.run(calls.begin(RUN, SECOND, "qcfuse")[1], RUN)
    next(generator)
    generator.close()
    assert calls.session.num_closed == 1


def test_the_other_questions_are_offered_and_a_typed_one_stays(calls):
    scenarios = (harbour_scenario(), injection_scenario())
    assert next_questions(RUN, None, scenarios) == ([SECOND], SECOND)
    assert next_questions(RUN, "My own?", scenarios) == ([SECOND], "My own?")
    assert next_questions(RUN, RUN.question, scenarios) == ([SECOND], SECOND)
    assert next_questions(None, None, scenarios) == ([], None)
    pair = FlipPair("qcfuse", RUN, RUN)
    assert calls.offer(RUN, None, pair)[1] is pair
    other = replace(RUN, chunks=RUN.chunks[:2])
    assert calls.offer(other, None, pair)[1] is None and calls.offer(None, None, pair)[1] is None


def test_stopped_and_broken_off_have_their_own_sentences(calls):
    assert unpack(calls.stopped()[0])["message"] == "Stopped."
    assert "broke off" in unpack(calls.ended_early(calls.begin(RUN, SECOND, "qcfuse")[1]))["message"]
