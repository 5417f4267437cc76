"""The app's client against a real server: the same request there and here, the same Run."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fusion_worlds import ORDERS, lighthouse

from engine.compare import compare
from engine.errors import BackendUnavailable, BadRequest, Cancelled, ModelUnavailable, UnknownName
from engine.model.tiny import tiny_model
from engine.outcomes import Outcomes
from engine.runfile import dump_run, parse_run
from engine.serving.sglang_client import SGLangClient
from engine.serving.sglang_lane import PREFIX_CACHE, SGLangLane
from engine.serving.sglang_server import SGLangServer
from engine.turns import Turns

METHODS = ("full", "qcfuse", PREFIX_CACHE)


@pytest.fixture(scope="module")
def world(running):
    return running.world("llama")


@pytest.fixture(scope="module")
def client(world):
    found = SGLangServer(world.server.url)
    yield SGLangClient(found)
    found.close()


@pytest.fixture(scope="module")
def run(client):
    return client.run(asked(), METHODS)


@pytest.fixture(scope="module")
def own(world):
    """The same request by the built-in engine; it records the version of gradio, which this environment is without."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("engine.provenance._PACKAGES", ("torch", "transformers"))
        yield compare(world.runtime, asked(), ("full", "qcfuse"))


def asked(**more):
    return replace(lighthouse(ORDERS[1], ratio=0.3), supporting=(("c2", "born in Vell"),), **more)


def test_methods_stand_side_by_side_in_one_run(run, own, world):
    assert [method.method for method in run.methods] == list(METHODS)
    assert run.token_ids.tolist() == own.token_ids.tolist() and run.tokens == own.tokens
    assert run.method("qcfuse").rows.tolist() == own.method("qcfuse").rows.tolist()
    assert run.method("qcfuse").params == own.method("qcfuse").params
    for name in ("full", "qcfuse"):
        assert run.method(name).answer_ids[:8].tolist() == own.method(name).answer_ids[:8].tolist()
    assert [chunk.cache_hash for chunk in run.chunks] == [chunk.cache_hash for chunk in own.chunks]
    assert run.answer_spans == own.answer_spans != ()
    assert run.method("qcfuse").quality.span_recall == own.method("qcfuse").quality.span_recall
    assert run.method("full").num_cache_hits == 0
    assert run.method(PREFIX_CACHE).num_cache_hits == world.prompt(asked()).num_doc_tokens
    assert run.notices == (world.runtime.calibration.note,), "nothing but that the layer is a guess"


def test_times_are_the_clients_and_their_parts_add_up(run):
    for method in run.methods:
        parts = method.parts_s
        assert parts.probe + parts.select + parts.load_wait + parts.recompute + parts.head == pytest.approx(method.ttft_s)
        assert len(method.token_times_s) == len(method.answer_ids) and np.all(np.diff(method.token_times_s) >= 0)
    fused = run.method("qcfuse")
    assert fused.parts_s.recompute > 0 and fused.spans[-1].end_s == pytest.approx(fused.ttft_s)


def test_the_servers_own_times_stand_beside_the_clients(run):
    for method in run.methods:
        assert 0 < method.server_ttft_s < method.ttft_s, "its clock starts later and stops earlier"
        assert 0 < method.parts_s.recompute < method.ttft_s and method.parts_s.head > 0


def test_a_run_carries_its_badge_through_a_file(run, own):
    assert run.provenance.served_by == parse_run(dump_run(run)).provenance.served_by == "SGLang"
    assert own.provenance.served_by is None
    assert run.provenance.versions["sglang"] in run.provenance.device
    assert "qcfuse" in run.provenance.kernels and "prefix cache by saecache" in run.provenance.kernels
    assert run.num_layers == 4


def test_other_methods_run_there_and_those_that_cannot_are_refused(client, run):
    again = client.run(asked(), ("infoflow", "epic"))
    assert again.notices == run.notices and again.method("epic").rows.tolist() != again.method("infoflow").rows.tolist()
    with pytest.raises(BadRequest, match="attention does not"):
        client.run(asked(), ("ape",))
    with pytest.raises(UnknownName):
        client.run(asked(), ("magic",))


def test_a_run_stops_where_its_owner_says(client):
    with pytest.raises(Cancelled):
        client.run(asked(), ("full",), cancelled=lambda: True)


def test_the_apps_lane_serves_the_model_in_use_alone(world, run):
    lane = SGLangLane(world.server.url, Turns(), Outcomes(), lambda: world.runtime, 0.0)
    *_, found = lane.stream(asked(), METHODS)
    assert [method.rows.tolist() for method in found.methods] == [method.rows.tolist() for method in run.methods]
    other = SGLangLane(world.server.url, Turns(), Outcomes(), lambda: SimpleNamespace(model=tiny_model()), 0.0)
    with pytest.raises(ModelUnavailable, match="the model in use here is 'tiny-llama'"):
        other.run(asked(), METHODS)


def test_live_figures_of_the_policy_come_over_http(client):
    told = client.server.policy()
    assert told["policy"] == "saecache" and told["cached_pages"] > 0


def test_nobody_there_is_one_sentence():
    with pytest.raises(BackendUnavailable, match=r"127.0.0.1:9 does not answer \(.*FUSESCOPE_SGLANG_URL"):
        SGLangServer("http://127.0.0.1:9").info()
