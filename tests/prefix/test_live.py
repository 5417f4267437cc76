"""The live run: what policies do with the real cache is what the replay says, measured, reported as it happens, stoppable."""

import re
import zlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.errors import BadRequest, Cancelled
from engine.model.decoder import Decoder
from engine.model.tiny import tiny_model
from engine.prefix.blocks import TokenType
from engine.prefix.cachefile import load_cache_run, save_cache_run
from engine.prefix.live import LiveRun
from engine.prefix.live_script import SHARES, Storyteller, load_script_files, load_slots, slot_names
from engine.prefix.live_traffic import live_traffic
from engine.prefix.policies import POLICIES
from engine.prefix.replay import replay
from engine.prefix.roles import ChatFormat
from engine.scenarios import load_scenarios
from kernels.ops import load_ops

ONLINE = [name for name in POLICIES.names() if not POLICIES.create(name).needs_future]
CAPACITY = 40


def word_ids(text, special):
    """Returns an id below 256 for every piece of a word: the tiny model's context holds few of its own tokens, which are bytes."""
    return np.array([zlib.crc32(piece.encode()) % 256 for piece in re.findall(r"\w{1,8}|[^\w\s]", text)], np.int64)


@pytest.fixture(scope="module")
def world():
    model = tiny_model("llama")
    chat = ChatFormat(model.tokenizer, word_ids)
    traffic = live_traffic(chat, 40, 1, 4.0, model.spec.max_context).predicted(0.77, 1)
    return SimpleNamespace(chat=chat, traffic=traffic, decoder=Decoder(model, load_ops("torch")))


def policies(*names):
    return [POLICIES.create(name) for name in names]


@pytest.fixture(scope="module")
def ran(world):
    """All policies at once, the steps as they were told, the servers afterwards."""
    live, steps = LiveRun(world.decoder, world.traffic, policies(*ONLINE), CAPACITY), []
    before = live.pool_bytes
    runs = live.run(1, "made up", "a tiny model", steps.append)
    assert live.pool_bytes == before
    for server in live.servers:
        server.check_integrity()
        assert server.num_running == 0
    return SimpleNamespace(runs=dict(zip(ONLINE, runs, strict=True)), steps=steps)


def test_the_mixture_has_every_kind_and_every_type(world):
    assert {request.kind for request in world.traffic.requests} == set(SHARES)
    assert set(world.traffic.workload.kind.tolist()) == set(TokenType)
    assert world.traffic.workload.num_requests == 40 and world.traffic.workload.num_blocks > 4 * CAPACITY


@pytest.mark.parametrize("name", ONLINE)
def test_hits_and_evictions_are_those_of_the_replay(world, ran, name):
    run, simulated = ran.runs[name], replay(world.traffic.workload, POLICIES.create(name), CAPACITY)
    assert run.requests.hit_blocks.tolist() == simulated.num_hits.tolist()
    assert run.requests.num_inserted.tolist() == simulated.num_inserted.tolist()
    assert run.evictions.block.tolist() == simulated.evicted.tolist()
    assert run.evictions.request.tolist() == simulated.evicted_at.tolist()
    assert run.evictions.hits.tolist() == simulated.evicted_hits.tolist()
    assert run.evictions.queue.tolist() == simulated.evicted_queue.tolist()
    assert run.snapshots.queues[-1].tolist() == simulated.snapshots.queues[-1].tolist()
    assert run.snapshots.kinds[-1].tolist() == simulated.snapshots.kinds[-1].tolist()
    if run.snapshots.weight_names:
        np.testing.assert_array_equal(run.snapshots.weights[-1], simulated.snapshots.weights[-1])


@pytest.mark.parametrize("name", ONLINE)
def test_the_run_is_measured_and_its_tokens_add_up(world, ran, name):
    run = ran.runs[name]
    assert run.mode == "live" and run.cost.startswith("measured: a tiny model")
    assert run.predictor == f"made up; right on {world.traffic.workload.share_right:.1%} of these 40 requests"
    assert (run.requests.ttft_s > 0).all() and run.elapsed_s > 0
    told = [step.served.first.ttft_s for step in ran.steps if step.policy == name]
    np.testing.assert_allclose(run.requests.ttft_s, told, rtol=1e-6)
    lengths = [len(request.prompt) for request in world.traffic.requests]
    assert run.requests.prompt_tokens.tolist() == lengths
    assert (run.requests.hit_tokens + run.requests.missed_tokens.sum(1)).tolist() == lengths
    assert (run.requests.missed_tokens >= 0).all() and (run.requests.hit_tokens < lengths).all()
    assert run.capacity_blocks == CAPACITY and run.num_blocks == world.traffic.workload.num_blocks


def test_the_limit_finds_at_least_as_much_as_every_policy(ran):
    for name, run in ran.runs.items():
        assert run.requests.hit_blocks.sum() <= run.limit_hit_blocks.sum(), name
    assert ran.runs["lru"].evictions.regret.any()


def test_steps_are_told_as_they_happen_and_policies_take_turns(ran):
    num = len(ONLINE)
    for index in range(40):
        steps = ran.steps[index * num : (index + 1) * num]
        assert {step.index for step in steps} == {index}
        assert [step.policy for step in steps] == (ONLINE if index % 2 == 0 else ONLINE[::-1])
    for step in ran.steps:
        assert step.held.queues.sum() == step.held.kinds.sum() == CAPACITY - step.held.num_free <= CAPACITY


def test_a_run_is_kept_and_read_again(ran, tmp_path):
    path = tmp_path / "a.cache.json.gz"
    save_cache_run(ran.runs["saecache"], path)
    again = load_cache_run(path)
    assert again.mode == "live" and again.requests.ttft_s.tolist() == ran.runs["saecache"].requests.ttft_s.tolist()


def test_predictions_from_the_models_state_are_what_the_policies_are_told(world):
    unpredicted, told = world.traffic.predicted(None, 0), []
    live = LiveRun(world.decoder, unpredicted, policies("saecache"), CAPACITY, predict=lambda hidden: float(hidden.sum().sigmoid()))
    (run,) = live.run(1, "made up", "a tiny model", lambda step: told.append(step.served.follow_up))
    assert min(told) < 0.5 < max(told)
    workload = replace(unpredicted.workload, follow_up=np.array(told, np.float32))
    assert run.evictions.block.tolist() == replay(workload, POLICIES.create("saecache"), CAPACITY).evicted.tolist()


def test_prefills_that_are_repeated_for_their_time_leave_no_trace(world, monkeypatch):
    live, steps, taken = LiveRun(world.decoder, world.traffic, policies("saecache"), CAPACITY, repeats=3), [], []
    prefill = live.servers[0].prefill

    def timed(*args):
        running = prefill(*args)
        taken.append(running.first.ttft_s)
        return running

    monkeypatch.setattr(live.servers[0], "prefill", timed)
    (run,) = live.run(1, "made up", "a tiny model", steps.append)
    simulated = replay(world.traffic.workload, POLICIES.create("saecache"), CAPACITY)
    assert run.evictions.block.tolist() == simulated.evicted.tolist()
    assert run.requests.hit_blocks.tolist() == simulated.num_hits.tolist()
    assert [step.served.first.ttft_s for step in steps] == np.median(np.reshape(taken, (40, 3)), axis=1).tolist()


@pytest.mark.parametrize("num_steps", [0, 1, 7])
def test_a_run_that_is_stopped_holds_nothing(world, num_steps):
    live, steps = LiveRun(world.decoder, world.traffic, policies("lru", "saecache"), CAPACITY), []
    with pytest.raises(Cancelled):
        live.run(1, "none", "a tiny model", steps.append, cancelled=lambda: len(steps) >= num_steps)
    assert len(steps) == num_steps
    for server in live.servers:
        server.check_integrity()
        assert server.num_running == 0 and not server.columns.num_pins.any()


def test_the_same_seed_tells_the_same_requests(world):
    def ids(seed):
        traffic = live_traffic(world.chat, 12, seed, 4.0, 2048)
        return [request.prompt.ids.tolist() for request in traffic.requests], traffic.workload.time_s.tolist()

    assert ids(3) == ids(3) and ids(3) != ids(4)


def test_fewer_requests_are_the_first_of_more(world):
    some, more = (live_traffic(world.chat, num, 5, 4.0, 2048).workload for num in (10, 25))
    assert some.time_s.tolist() == more.time_s[:10].tolist() and some.num_tokens.tolist() == more.num_tokens[:10].tolist()


def test_a_turn_repeats_the_session_before_it(world):
    """The next prompt begins with the prompt before and, where it was not thought, the answer."""
    before, num_checked = {}, 0
    for told, request in zip(world.traffic.workload.requests(), world.traffic.requests, strict=True):
        if told.turn:
            earlier = before[told.session]
            whole = earlier.prompt if (earlier.answer.kinds == TokenType.COT).any() else earlier.prompt + earlier.answer
            assert request.prompt.ids[: len(whole)].tolist() == whole.ids.tolist()
            num_checked += 1
        before[told.session] = request
    assert num_checked > 5


def test_what_cannot_run_is_refused_in_one_sentence(world):
    with pytest.raises(BadRequest, match="'min' needs to know requests to come"):
        LiveRun(world.decoder, world.traffic, policies("lru", "min"), CAPACITY)
    with pytest.raises(BadRequest, match="timed 0 times; give at least 1"):
        LiveRun(world.decoder, world.traffic, policies("lru"), CAPACITY, repeats=0)
    with pytest.raises(BadRequest, match="0 requests; it must have at least one"):
        live_traffic(world.chat, 0, 0, 4.0, 2048)
    with pytest.raises(BadRequest, match="at most 20 tokens, too few"):
        live_traffic(world.chat, 5, 0, 4.0, 20)


def test_the_scripts_are_whole():
    slots, files, scenarios = load_slots(), load_script_files(), load_scenarios()
    assert {file.kind for file in files} == set(SHARES)
    for file in files:
        assert file.fictional and file.licence == "Apache-2.0" and set(file.scenarios) <= set(scenarios)
        assert bool(file.scenarios) != bool(file.scripts)
        settings = {setting.name: setting for setting in file.settings}
        for script in file.scripts:
            assert script.setting in settings and script.turns and script.turns[0].user
            for turn in script.turns:
                assert bool(turn.user) != bool(turn.tool) and turn.answer.strip()
                assert not turn.tool or settings[script.setting].tools
            texts = [text for turn in script.turns for text in (turn.user, turn.tool, turn.answer)]
            assert slot_names(texts) <= {*slots, "number"}, script.name
            assert slot_names(texts[:2]), "the first turn must differ from session to session"


def test_no_slot_is_left_open():
    told = [session for session, _ in zip(Storyteller(0, 1.0), range(200), strict=False)]
    slots = {"number", *load_slots()}
    assert not slot_names([turn.asks.text + turn.answer for session in told for turn in session.turns]) & slots
    assert all(session.is_agent == (session.kind == "agent") for session in told)
    assert all(turn.gap_s > 0 for session in told for turn in session.turns[1:])
