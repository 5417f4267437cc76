"""The session: statuses, cancellation, queueing, models and failures, on a tiny model."""

import threading

import pytest
from worlds import lighthouse, tiny_runtime

import engine.runtime
from engine.compare import Comparison, compare, create_methods
from engine.errors import BadRequest, Cancelled, ModelUnavailable, UnknownName
from engine.session import Session
from engine.settings import Settings
from engine.types import Run, Status

METHODS = ("full", "reuse", "qcfuse")


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session whose models are tiny; the name "missing" cannot be had."""

    def load(name, settings, store=None):
        if name == "missing":
            raise ModelUnavailable("There is no model 'missing'; give a hub id or a local path.")
        return tiny_runtime(tmp_path, "qwen3" if name == "qwen3" else "llama")

    monkeypatch.setattr(engine.runtime, "load_runtime", load)
    return Session(Settings(cache_dir=tmp_path))


def test_a_stream_ends_with_the_run(session):
    events = list(session.stream(lighthouse(max_new_tokens=4), METHODS))
    assert all(isinstance(event, Status) for event in events[:-1])
    run = events[-1]
    assert isinstance(run, Run) and run.provenance.mode == "live"
    assert [m.method for m in run.methods] == list(METHODS)


def test_same_seed_gives_the_same_run_but_for_times(session):
    request = lighthouse(max_new_tokens=6, temperature=0.8, seed=5)
    first, again = session.run(request, METHODS), session.run(request, METHODS)
    for a, b in zip(first.methods, again.methods, strict=True):
        assert a.answer_ids.tolist() == b.answer_ids.tolist() and a.rows.tolist() == b.rows.tolist() and a.quality == b.quality


@pytest.mark.parametrize("methods", [(), ("full", "nonsense"), ("full", "qcfuse+nonsense"), ("full", "qcfuse+primed+primed")])
def test_bad_methods_are_one_sentence_and_the_next_run_works(session, methods):
    with pytest.raises((BadRequest, UnknownName)):
        session.run(lighthouse(), methods)
    assert session.run(lighthouse(max_new_tokens=2), ("full",)).methods


def test_closing_the_stream_stops_the_run_and_frees_the_engine(session):
    stream = session.stream(lighthouse(max_new_tokens=500), METHODS)
    next(stream)
    stream.close()
    assert session.run(lighthouse(max_new_tokens=2), ("full",)).methods


def test_a_cancelled_run_says_so(session):
    session.run(lighthouse(max_new_tokens=2), ("full",))
    with pytest.raises(Cancelled):
        session.run(lighthouse(max_new_tokens=2), METHODS, cancelled=lambda: True)


def test_a_second_visitor_waits_and_knows_it(session):
    session.run(lighthouse(max_new_tokens=2), ("full",))
    inside, go, seen = threading.Event(), threading.Event(), []

    def hold(status):
        inside.set()
        go.wait(10)

    first = threading.Thread(target=session.run, args=(lighthouse(max_new_tokens=2), METHODS, hold))
    first.start()
    assert inside.wait(10)
    second = threading.Thread(target=session.run, args=(lighthouse(max_new_tokens=2), METHODS, seen.append))
    second.start()
    while not any(status.queue_position for status in seen):
        assert second.is_alive()
    go.set()
    first.join(timeout=30)
    second.join(timeout=30)
    assert [s.queue_position for s in seen if s.queue_position] == [1]


def test_another_model_is_taken_and_a_missing_one_keeps_it(session):
    assert "tiny-qwen3" in session.select_model("qwen3")
    with pytest.raises(ModelUnavailable):
        session.select_model("missing")
    assert "tiny-qwen3" in session.model_line()
    assert session.run(lighthouse(max_new_tokens=2), ("full",)).provenance.model == "tiny-qwen3"
    with pytest.raises(BadRequest):
        session.select_model("  ")


def test_a_vanished_chunk_file_is_computed_again(session, tmp_path):
    session.run(lighthouse(max_new_tokens=2), METHODS)
    for path in (tmp_path / "chunks").glob("*.safetensors"):
        path.write_bytes(b"overwritten")
    run = session.run(lighthouse(max_new_tokens=2), METHODS)
    assert any("set aside" in notice for notice in run.notices)
    assert {chunk.source for chunk in run.chunks} == {"computed"}


def test_a_request_outlives_the_eviction_of_all_its_files(tmp_path):
    """What was found is held, the system part too: another process may make room at any moment."""
    runtime, request = tiny_runtime(tmp_path), lighthouse(max_new_tokens=2)
    compare(runtime, request, METHODS)
    prepared = runtime.prepare(request)
    for path in (tmp_path / "chunks").glob("*.safetensors"):
        path.unlink()
    run = Comparison(runtime, request, prepared).run(create_methods(METHODS, request))
    assert {chunk.source for chunk in run.chunks} == {"disk"} and len(run.methods) == len(METHODS)


def test_scenarios_and_recorded_runs(session):
    names = [scenario.name for scenario in session.scenarios()]
    assert len(names) >= 8
    with pytest.raises(UnknownName, match=names[0]):
        session.scenario("nowhere")
    assert session.recorded("nowhere") is None
