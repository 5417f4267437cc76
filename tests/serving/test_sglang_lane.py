"""The lane to an SGLang server, against one with made-up answers: what is sent, the Run that comes, and every way to fail."""

import threading
import time

import pytest
from fake_sglang import PLUGIN, TEXT, FakeSGLang, serving
from fastapi import FastAPI
from launch import free_port
from worlds import lighthouse, tiny_runtime

import engine.runtime
from engine.errors import BackendUnavailable, BadRequest, Cancelled, ModelUnavailable, TimedOut, UnknownName
from engine.protection import Protection
from engine.runfile import dump_run, parse_run
from engine.serving.sglang.metadata import read_meta
from engine.serving.sglang_lane import PREFIX_CACHE
from engine.session import Session
from engine.settings import Settings
from engine.types import Run, Status

METHODS = ("full", "reuse", "qcfuse", PREFIX_CACHE)


@pytest.fixture
def fake():
    return FakeSGLang()


@pytest.fixture
def url(fake):
    with serving(fake.app()) as url:
        yield url


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return tiny_runtime(tmp_path_factory.mktemp("lane"))


@pytest.fixture
def session_at(tmp_path, monkeypatch, runtime):
    """Returns sessions on a tiny model that name a server."""
    monkeypatch.setattr(engine.runtime, "load_runtime", lambda name, settings, store=None: runtime)
    return lambda url, **more: Session(Settings(cache_dir=tmp_path, sglang_url=url, protection=Protection(**more)))


def asked(**more):
    return lighthouse(max_new_tokens=8, **more)


def assert_built_in_goes_on(session):
    assert session.run(asked(), ("full",)).provenance.served_by is None


def test_without_the_setting_there_is_no_lane(session_at):
    assert session_at("").sglang is None


def test_methods_stand_side_by_side_in_the_same_run(session_at, url, fake):
    run = session_at(url).sglang.run(asked(repeats=3), METHODS)
    assert [method.method for method in run.methods] == list(METHODS)
    assert run.provenance.served_by == "SGLang" and run.provenance.device == f"{PLUGIN['device']}, SGLang 0.5.23"
    assert run.provenance.kernels == "SGLang 0.5.23 qcfuse; torch; prefix cache by saecache"
    assert all(method.answer == TEXT and len(method.ttft_repeats_s) == 3 for method in run.methods)
    assert run.method("full").num_cache_hits == 0
    assert run.method("reuse").num_cache_hits == run.method(PREFIX_CACHE).num_cache_hits == run.num_doc_tokens
    rows = run.method("qcfuse").rows
    assert 0 < int((rows < run.question_start).sum()) < run.num_doc_tokens
    back = parse_run(dump_run(run))
    assert back.provenance.served_by == "SGLang" and back.method("full").server_ttft_s == run.method("full").server_ttft_s


def test_times_are_the_clients_and_the_servers_own_stand_beside_them(session_at, url, fake):
    run = session_at(url).sglang.run(asked(), METHODS)
    for method in run.methods:
        parts = method.parts_s
        assert parts.probe + parts.select + parts.load_wait + parts.recompute + parts.head == pytest.approx(method.ttft_s)
        assert method.server_ttft_s == 0.004 and method.spans[-1].end_s == pytest.approx(max(method.ttft_s, sum(_lengths(method))))
    full = run.method("full")
    # A fast machine has the answer before the time that the fake server claims is over.
    assert full.parts_s.recompute == pytest.approx(min(0.003, full.ttft_s))
    assert [span.stage for span in run.method("qcfuse").spans] == ["load_wait", "select", "recompute"]
    fake.tells_times = False
    untold = session_at(url).sglang.run(asked(), ("full",)).method("full")
    assert untold.server_ttft_s is None and untold.spans == () and untold.parts_s.recompute == untold.ttft_s


def _lengths(method):
    return [span.end_s - span.start_s for span in method.spans]


def test_what_the_server_does_not_give_is_absent(session_at, url):
    run = session_at(url).sglang.run(asked(), METHODS)
    for method in run.methods:
        assert method.ranking is None and method.scores is None and method.anchors is None and method.kv_distance is None
        assert method.quality.gold_nll is None and method.quality.kl_to_full is None
        assert all(span.layer == -1 for span in method.spans)


def test_only_prefix_caching_finds_what_was_sent_before(session_at, url, fake):
    session_at(url).sglang.run(asked(repeats=2), METHODS)
    fused = [read_meta(body["sampling_params"].get("custom_params")).fusion for body in fake.seen]
    salts = [body.get("cache_salt") for body in fake.seen]
    own = [salt for salt in salts if salt]
    assert len(set(own)) == len(own), "every other request has a salt of its own"
    assert [fusion is None for fusion, salt in zip(fused, salts, strict=True) if salt is None] == [True] * 3
    assert {fusion.method for fusion in fused if fusion} == {"reuse", "qcfuse"}
    assert len({tuple(body["input_ids"]) for body in fake.seen}) == 1, "all methods get the same token ids"
    # Answers are written once; what is measured before is a first token.
    assert [body["sampling_params"]["max_new_tokens"] for body in fake.seen] == [1] * 7 + [8] * 4


def test_a_stream_tells_how_far_it_is_and_what_has_been_answered(session_at, url):
    *statuses, run = session_at(url).sglang.stream(asked(), ("full", "qcfuse"))
    assert isinstance(run, Run) and all(isinstance(status, Status) for status in statuses)
    assert "what it serves" in statuses[0].message
    assert statuses[-1].answers["full"] == TEXT


def test_a_request_that_could_not_be_fused_says_why(session_at, url, fake, monkeypatch):
    monkeypatch.setattr("fake_sglang.outcome", lambda fusion, num: {"fused": False, "reason": "The prompt is too long for it."})
    run = session_at(url).sglang.run(asked(), ("full", "qcfuse"))
    assert run.notices == ("qcfuse was computed in full on SGLang: The prompt is too long for it.",)
    assert len(run.method("qcfuse").rows) == len(run.tokens)


def test_a_layer_that_is_a_guess_there_is_told(session_at, url, fake):
    fake.fusion |= {"calibration": "guess", "calibration_note": "The layer is a guess."}
    assert session_at(url).sglang.run(asked(), ("full",)).notices == ("The layer is a guess.",)


def test_methods_that_it_cannot_run_are_refused_before_anything_is_sent(session_at, url, fake):
    lane = session_at(url).sglang
    for methods, error in ((("ape",), BadRequest), (("magic",), UnknownName), ((), BadRequest)):
        with pytest.raises(error):
            lane.run(asked(), methods)
    assert fake.seen == []


def test_a_server_that_is_not_there_is_one_sentence(session_at):
    session = session_at(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(BackendUnavailable, match=r"at 127.0.0.1:\d+ does not answer \(.*start it again, or unset FUSESCOPE_SGLANG_URL\.$"):
        session.sglang.run(asked(), METHODS)
    assert_built_in_goes_on(session)


def test_a_server_of_another_model_is_one_sentence(session_at, url, fake):
    fake.model = "Qwen/Qwen3-0.6B"
    session = session_at(url)
    with pytest.raises(ModelUnavailable, match=r"serves 'Qwen/Qwen3-0\.6B', and the model in use here is 'tiny-llama'; both must"):
        session.sglang.run(asked(), METHODS)
    assert fake.seen == []
    assert_built_in_goes_on(session)


def test_a_server_without_the_plugin_is_one_sentence(session_at, url, fake):
    session = session_at(url)
    fake.fusion = None
    with pytest.raises(BackendUnavailable, match="is not an SGLang server with this project's plugin; start one with python -m"):
        session.sglang.run(asked(), METHODS)
    fake.fusion = {"hindrance": "The server's weights are split."}
    with pytest.raises(BackendUnavailable, match=r"fuses nothing: The server's weights are split; start it again with"):
        session.sglang.run(asked(), METHODS)
    assert_built_in_goes_on(session)


def test_what_is_no_sglang_server_is_one_sentence(session_at):
    with serving(FastAPI()) as url, pytest.raises(BackendUnavailable, match="answers 404 on /server_info, as no SGLang server does"):
        session_at(url).sglang.run(asked(), METHODS)
    other = FastAPI()
    other.get("/server_info")(lambda: ["hello"])
    with serving(other) as url, pytest.raises(BackendUnavailable, match="answers, but not as an SGLang server does"):
        session_at(url).sglang.run(asked(), METHODS)


@pytest.mark.parametrize("num_pieces", [0, 2])
def test_a_server_that_ends_in_the_middle_is_one_sentence(session_at, url, fake, num_pieces):
    fake.num_pieces = num_pieces
    session = session_at(url)
    with pytest.raises(BackendUnavailable, match=r"^The SGLang server at 127.0.0.1:\d+ (does not answer|ended in the middle)"):
        session.sglang.run(asked(), ("full",))
    assert_built_in_goes_on(session)


def test_an_answer_without_its_end_is_no_answer(session_at, url, fake, monkeypatch):
    whole = FakeSGLang._pieces
    monkeypatch.setattr(FakeSGLang, "_pieces", lambda self, body: iter(list(whole(self, body))[:2]))
    with pytest.raises(BackendUnavailable, match="ended in the middle of its answer; see its log and start it again"):
        session_at(url).sglang.run(asked(), ("full",))


def test_a_refusal_is_the_servers_reason(session_at, url, fake, monkeypatch):
    said = 'data: {"error": {"message": "The input is longer than the context."}}\n\n'
    monkeypatch.setattr(FakeSGLang, "_pieces", lambda self, body: iter([said]))
    with pytest.raises(BackendUnavailable, match=r"refused the request \(The input is longer than the context\.\)"):
        session_at(url).sglang.run(asked(), ("full",))


def test_a_silent_server_is_let_go_of_at_once_and_the_engine_is_free(session_at, url, fake):
    fake.silence.set()
    session, stopped, raised = session_at(url), threading.Event(), []

    def run():
        try:
            session.sglang.run(asked(), ("full",), cancelled=stopped.is_set)
        except Cancelled as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not fake.seen:
        time.sleep(0.01)
    stopped.set()
    thread.join(20)
    assert raised and not thread.is_alive()
    assert_built_in_goes_on(session)
    with pytest.raises(TimedOut, match=r"more than 0\.2 s"):
        session_at(url, timeout_s=0.2).sglang.run(asked(), ("full",))
    fake.silence.clear()


def test_server_and_engine_take_turns(session_at, url, fake):
    fake.silence.set()
    session, seen = session_at(url), []
    first = threading.Thread(target=session.sglang.run, args=(asked(), ("full",)))
    first.start()
    while not fake.seen:
        time.sleep(0.01)
    second = threading.Thread(target=session.run, args=(asked(), ("full",), seen.append))
    second.start()
    while not seen:
        time.sleep(0.01)
    assert seen[0].queue_position == 1
    fake.silence.clear()
    first.join(30)
    second.join(30)
    assert not first.is_alive() and not second.is_alive()


@pytest.mark.parametrize("url", ["127.0.0.1:30000", "ftp://host", "http://", "http://host:port", "http://me:secret@host:30000"])
def test_addresses_come_from_the_settings_alone_and_bad_ones_are_named(url):
    with pytest.raises(BadRequest, match=r"FUSESCOPE_SGLANG_URL .*such as http://") as raised:
        Settings.from_env({"FUSESCOPE_SGLANG_URL": url})
    assert "secret" not in str(raised.value)


def test_an_address_is_shown_as_host_and_port(session_at):
    settings = Settings.from_env({"FUSESCOPE_SGLANG_URL": "http://gpu-3:30000/"})
    assert settings.sglang_url == "http://gpu-3:30000"
    assert session_at(settings.sglang_url).sglang.label == "SGLang at gpu-3:30000"
