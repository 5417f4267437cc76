"""Runs on a lent GPU: what crosses to the other process, what comes back, and what happens where none can be had."""

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.errors import BackendUnavailable, BadRequest, Cancelled, UnknownName
from engine.gpu_calls import GpuCalls, gpu_seconds, in_call, run_on_gpu
from engine.model.tiny import byte_tokenizer, tiny_hf_model
from engine.session import Session
from engine.settings import Settings
from engine.space import with_space_defaults
from engine.types import Chunk, FusionRequest, Run, Status
from viz.panels.zerogpu import in_sentences, lent_gpu

REQUEST = FusionRequest("Which ship is old?", (Chunk("a", "A", "The Erna is an old ship."), Chunk("b", "B", "The harbour is deep.")), 0.5)
SHORT = replace(REQUEST, max_new_tokens=2)
METHODS = ("full", "qcfuse")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The name of a tiny model: its folder."""
    folder = tmp_path_factory.mktemp("model")
    tiny_hf_model("llama").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture
def settings(tmp_path, model):
    return Settings(model=model, device="cpu", cache_dir=tmp_path)


def pickled(call):
    """Returns a lender that hands everything through pickle, as a process between does."""

    def lent(*arguments):
        for item in call(*pickle.loads(pickle.dumps(arguments))):
            yield pickle.loads(pickle.dumps(item))

    return lent


def test_a_session_with_a_lender_never_loads_a_model_itself(settings):
    session = Session(settings, GpuCalls(pickled(run_on_gpu)))
    *statuses, run = session.stream(SHORT, METHODS)
    assert isinstance(run, Run) and [m.method for m in run.methods] == list(METHODS) and run.provenance.num_threads == 1
    assert all(isinstance(item, Status) for item in statuses) and session.health().state == "idle"


def test_a_lent_run_equals_one_of_this_process_and_finds_its_chunks_on_disk(settings):
    def answers(run):
        return [(m.method, m.answer, m.rows.tolist()) for m in run.methods]

    here = Session(replace(settings, num_threads=1)).run(SHORT, METHODS)
    there = Session(settings, GpuCalls(pickled(run_on_gpu))).run(SHORT, METHODS)
    assert answers(there) == answers(here)
    assert {chunk.source for chunk in here.chunks} == {"computed"} and {chunk.source for chunk in there.chunks} == {"disk"}


def test_an_error_there_is_the_same_sentence_here(settings):
    long = replace(SHORT, chunks=(Chunk("a", "A", "word " * 9000),))
    with pytest.raises(BadRequest) as here:
        Session(settings).run(long, METHODS)
    with pytest.raises(BadRequest) as there:
        Session(settings, GpuCalls(pickled(run_on_gpu))).run(long, METHODS)
    assert str(there.value) == str(here.value)


def test_a_method_that_nobody_knows_asks_for_no_gpu(settings):
    def never(*arguments) -> Iterator[Run]:
        raise AssertionError("a GPU was asked for")
        yield

    with pytest.raises(UnknownName):
        Session(settings, GpuCalls(never)).run(SHORT, ("nothing",))


def test_the_model_line_says_where_runs_go(settings):
    session = Session(settings, GpuCalls(pickled(run_on_gpu)))
    session.select_model(settings.model)
    assert "cpu" in session.model_line() and "on a lent GPU" in session.model_line()


def test_stopping_ends_the_call(settings):
    closed = []

    def endless(*arguments):
        try:
            while True:
                yield Status("Computing", 0.1)
        finally:
            closed.append(True)

    seen = []
    with pytest.raises(Cancelled):
        GpuCalls(endless).run("m", settings, SHORT, METHODS, seen.append, lambda: len(seen) > 3)
    assert closed == [True]


def test_a_gpu_taken_back_is_a_sentence(settings):
    with pytest.raises(BackendUnavailable, match="taken back"):
        GpuCalls(lambda *arguments: iter_statuses()).run("m", settings, SHORT, METHODS, lambda status: None, lambda: False)


def iter_statuses():
    yield Status("Computing", 0.5)


def test_what_a_lender_raises_is_a_sentence(settings):
    import gradio as gr

    def refused(*arguments):
        raise gr.Error("You have exceeded your GPU quota", title="ZeroGPU quota exceeded")
        yield

    calls = GpuCalls(in_sentences(refused))
    with pytest.raises(BackendUnavailable, match=r"No GPU could be had.*exceeded your GPU quota.*try again"):
        calls.run("m", settings, SHORT, METHODS, lambda status: None, lambda: False)


def test_the_time_asked_for_grows_with_the_request_and_is_bounded():
    def asked(request, methods=METHODS):
        return gpu_seconds("m", Settings(), request, methods)

    first = asked(SHORT)
    assert isinstance(first, int) and 20 <= first <= 60
    assert asked(replace(SHORT, repeats=5)) > first and asked(replace(SHORT, max_new_tokens=200)) > first
    assert asked(SHORT, (*METHODS, "reuse")) > first
    assert asked(replace(SHORT, repeats=20, max_new_tokens=512), METHODS * 6) == 120


def test_a_call_has_one_thread_and_the_kernels_that_need_no_compiler():
    made = in_call(Settings(device="cpu", num_threads=8))
    assert (made.device, made.num_threads, made.kernels) == ("auto", 1, "torch")
    assert in_call(Settings(kernels="triton")).kernels == "triton"


def test_there_is_no_lender_off_zerogpu_nor_without_the_package(monkeypatch, caplog):
    assert lent_gpu({}) is None and lent_gpu({"SPACES_ZERO_GPU": "false"}) is None
    monkeypatch.setitem(__import__("sys").modules, "spaces", None)
    assert lent_gpu({"SPACES_ZERO_GPU": "true"}) is None and "spaces is not installed" in caplog.text


def test_a_space_lets_strangers_in_by_rules_and_what_is_set_stays():
    assert with_space_defaults({}).get("FUSESCOPE_PUBLIC") is None
    found = Settings.from_env({"SPACE_ID": "a/b"})
    assert found.host == "0.0.0.0" and found.protection.public and found.port == 7860
    own = Settings.from_env({"SPACE_ID": "a/b", "FUSESCOPE_PUBLIC": "0", "GRADIO_SERVER_PORT": "8080", "HOST": "127.0.0.1"})
    assert (own.host, own.port, own.protection.public) == ("127.0.0.1", 8080, False)
    assert Settings.from_env({"PORT": "1", "GRADIO_SERVER_PORT": "2"}).port == 1


def test_on_zerogpu_the_process_that_serves_has_no_gpu():
    assert Settings.from_env({"SPACE_ID": "a/b", "SPACES_ZERO_GPU": "true", "FUSESCOPE_DEVICE": "cuda"}).device == "cpu"
