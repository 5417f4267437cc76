"""Replays for the page: batches with progress that can be stopped, the next victims, the game, the recorded runs."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from engine import replays as replays_module
from engine.cache_types import CacheRun, ReplayRequest
from engine.errors import BadRequest, BadResultsFile, Cancelled, TimedOut, UnknownName
from engine.eviction_game import NEVER, NUM_CARDS, NUM_MOMENTS, PLAYERS
from engine.prefix.lab import run_replay
from engine.replays import RECORDED_DIR, Replays, replay
from engine.session import Session
from engine.settings import Settings
from engine.turns import Turns

ROOT = Path(__file__).resolve().parents[2]
LOAD, SHARE = "tool_use", 0.1
POLICIES = ("lru", "saecache", "sae_g", "min")


@pytest.fixture(scope="module")
def replays():
    return Replays(Turns())


@pytest.fixture(scope="module")
def runs(replays):
    return replays.run([ReplayRequest(LOAD, name, SHARE) for name in POLICIES])


def test_a_batch_is_what_each_request_gives_alone(runs):
    for name, run in zip(POLICIES, runs, strict=True):
        alone = run_replay(ReplayRequest(LOAD, name, SHARE))
        assert (run.policy, run.workload, run.capacity_blocks) == (name, LOAD, alone.capacity_blocks)
        assert np.array_equal(run.requests.hit_blocks, alone.requests.hit_blocks)
        assert np.array_equal(run.evictions.block, alone.evictions.block)
        assert np.array_equal(run.limit_hit_blocks, runs[-1].requests.hit_blocks)


def test_a_load_is_read_once_for_many_policies(monkeypatch):
    read = []
    load = replays_module.load_workload
    monkeypatch.setattr(replays_module, "load_workload", lambda *args, **kw: read.append(args) or load(*args, **kw))
    mine = Replays(Turns())
    for _ in range(2):
        mine.run([ReplayRequest(LOAD, name, SHARE) for name in ("lru", "saecache")])
    mine.run([ReplayRequest(LOAD, "lru", SHARE, seed=1)])
    assert [args[:2] for args in read] == [(LOAD, 0), (LOAD, 1)]


def test_progress_never_goes_back_and_names_the_policy(replays):
    told = []
    replays.run([ReplayRequest(LOAD, name, SHARE) for name in ("lru", "lfu")], told.append)
    shares = [status.fraction for status in told]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] <= 1
    assert {"Replaying lru, policy 1 of 2", "Replaying lfu, policy 2 of 2"} <= {status.message for status in told}


def test_a_batch_stops_where_its_owner_wishes(replays):
    done = []
    with pytest.raises(Cancelled):
        replays.run([ReplayRequest(LOAD, name, SHARE) for name in POLICIES], cancelled=lambda: bool(done), on_run=done.append)
    assert [run.policy for run in done] == ["lru"]


def test_a_batch_is_bounded_in_the_engines_time_and_says_so():
    done, mine = [], Replays(Turns(), limit_s=1e-6)
    with pytest.raises(TimedOut, match="more than 1e-06 s of the engine's time; choose fewer policies") as late:
        mine.run([ReplayRequest(LOAD, name, SHARE) for name in POLICIES], on_run=done.append)
    assert not done and "\n" not in str(late.value)
    with pytest.raises(TimedOut):
        mine.victims(ReplayRequest(LOAD, "lru", SHARE), 100)
    # The slot is free again, and a limit that is far away changes nothing.
    assert len(Replays(Turns(), limit_s=600.0).run([ReplayRequest(LOAD, "lru", SHARE)])) == 1


def test_a_stream_yields_every_run_and_ends_its_thread_when_closed(replays):
    requests = [ReplayRequest(LOAD, name, SHARE) for name in POLICIES]
    items = list(replays.stream(requests))
    assert [item.policy for item in items if isinstance(item, CacheRun)] == list(POLICIES)
    stream = replays.stream([ReplayRequest("balanced", name, 0.02, seed=5) for name in POLICIES])
    next(stream)
    stream.close()
    flag = threading.Event()
    flagged = replays.stream([ReplayRequest("balanced", name, 0.02, seed=5) for name in POLICIES], flag.is_set)
    next(flagged)
    flag.set()
    with pytest.raises(Cancelled):
        list(flagged)
    for thread in threading.enumerate():
        if thread.name.startswith("replay"):
            thread.join(60)
            assert not thread.is_alive()


def test_a_batch_that_is_left_while_it_waits_gives_up_its_place():
    turns = Turns()
    mine = Replays(turns)
    with turns.turn(lambda ahead: None, lambda: False):
        waiting = mine.stream([ReplayRequest(LOAD, "lru", SHARE)])
        told = [next(waiting) for _ in range(3)]
        # Told again and again, as only then the page or the endpoint learns that its reader has gone.
        assert {(status.message, status.queue_position) for status in told} == {("Waiting: 1 request ahead", 1)}
        assert turns.num_waiting == 1
        waiting.close()
        for thread in threading.enumerate():
            if thread.name.startswith("replay"):
                thread.join(60)
        assert turns.num_waiting == 0, "the slot is still held by another, and nobody waits for it"


@pytest.mark.parametrize(
    ("request_", "error", "said"),
    [
        (ReplayRequest(LOAD, "belady", SHARE), UnknownName, "belady"),
        (ReplayRequest("nowhere.jsonl", "lru", SHARE), BadRequest, "neither a log nor a generated workload"),
        (ReplayRequest(LOAD, "lru", 0.00001), BadRequest, "less than one block"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(replays, request_, error, said):
    with pytest.raises(error, match=said):
        replays.run([request_])


def test_nothing_to_replay_is_one_sentence(replays):
    with pytest.raises(BadRequest, match="No policy is chosen"):
        replays.run([])


@pytest.mark.parametrize("bad", ["", "{", '{"timestamp": 5, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}\n{"timestamp": 1'])
def test_a_broken_log_is_one_sentence_with_file_and_line(replays, tmp_path, bad):
    log = tmp_path / "mine.jsonl"
    log.write_text(bad)
    with pytest.raises(BadRequest, match=r"mine\.jsonl") as raised:
        replays.run([ReplayRequest(str(log), "lru", 2)])
    assert "\n" not in str(raised.value)


def test_a_log_is_called_by_its_file_name_alone(replays, tmp_path):
    log = tmp_path / "mine.jsonl"
    rows = [f'{{"timestamp": {i * 1000}, "input_length": 1024, "output_length": 1, "hash_ids": [1, {i % 3 + 2}]}}' for i in range(9)]
    log.write_text("\n".join(rows))
    (run,) = replays.run([ReplayRequest(str(log), "lru", 3)])
    assert str(tmp_path) not in run.workload and "mine" in run.workload and run.num_requests == 9


@pytest.mark.parametrize("policy", [*POLICIES, "s3_fifo", "lhd"])
def test_the_victims_asked_about_are_those_that_left(replays, policy):
    request = ReplayRequest(LOAD, policy, SHARE)
    (run,) = replays.run([request])
    moment = 200
    asked = replays.victims(request, moment, 12)
    first = int(np.searchsorted(run.evictions.request, moment))
    left = run.evictions
    assert [victim.block for victim in asked] == left.block[first : first + 12].tolist()
    assert [victim.request for victim in asked] == left.request[first : first + 12].tolist()
    assert np.allclose([victim.idle_s for victim in asked], left.idle_s[first : first + 12], rtol=1e-4)
    assert all(victim.sentence.endswith(".") for victim in asked)


def test_saecaches_reasons_are_the_factors_of_its_score(replays):
    victim = next(v for v in replays.victims(ReplayRequest(LOAD, "saecache", SHARE), 200, 40) if v.queue != "evict first")
    assert {name for name, _ in victim.factors} == {"alpha", "w", "p", "idle_s"} and victim.factor("nothing") is None
    assert 0 <= victim.factor("p") <= 1 and victim.factor("idle_s") == pytest.approx(victim.idle_s, abs=0.011)


@pytest.mark.parametrize("moment", [-1, 286])
def test_a_moment_outside_the_load_is_one_sentence(replays, moment):
    with pytest.raises(BadRequest, match="must be from 0 to 285"):
        replays.victims(ReplayRequest(LOAD, "lru", SHARE), moment, 3)


def test_the_game_offers_each_players_choice_and_nobody_beats_the_limit(replays):
    game = replays.game("balanced", 0.05, 0)
    assert game == replays.game("balanced", 0.05, 0) and len(game.moments) == NUM_MOMENTS
    for moment in game.moments:
        assert len({card.block for card in moment.cards}) == len(moment.cards) == NUM_CARDS
        assert set(moment.choices) == set(PLAYERS) and all(0 <= place < NUM_CARDS for place in moment.choices.values())
        idle = [card.idle_s for card in moment.cards]
        assert idle[moment.choices["lru"]] == max(idle)
        coming = [np.inf if card.next_request == NEVER else card.next_request for card in moment.cards]
        assert coming[moment.choices["min"]] == max(coming)
        assert all(card.next_request > moment.request for card in moment.cards if card.next_request != NEVER)
    assert game.num_lost("min") <= min(game.num_lost("lru"), game.num_lost("saecache"))
    assert [m.request for m in game.moments] != [m.request for m in replays.game("balanced", 0.05, 1).moments]


def test_a_cache_in_which_all_fits_makes_no_game(replays):
    with pytest.raises(BadRequest, match="choose a smaller cache"):
        replays.game(LOAD, 0.99, 0)


def test_recorded_runs_are_what_a_replay_gives_here(replays, runs):
    recorded = {run.policy: run for run in replays.recorded(LOAD)}
    assert replays.has_recording(LOAD) and not replays.has_recording("mix") and replays.recorded("../" + LOAD) == ()
    for run in runs:
        assert np.array_equal(recorded[run.policy].requests.hit_tokens, run.requests.hit_tokens)
        assert np.array_equal(recorded[run.policy].evictions.block, run.evictions.block)


def test_the_load_offered_as_saecaches_loss_is_one(replays):
    rates = {(row.policy, row.capacity): row.hit_tokens_second_half.mean for row in replays.recorded_curve(LOAD)}
    behind = [capacity for name, capacity in rates if name == "saecache" and rates[name, capacity] < rates["lru", capacity]]
    assert len(behind) >= 2 and {row.n for row in replays.recorded_curve(LOAD)} == {3}


def test_a_broken_recorded_curve_is_one_sentence(tmp_path):
    (tmp_path / f"{LOAD}.json").write_text('{"rows": [{"capacity": "x"}]}')
    with pytest.raises(BadResultsFile, match=f"{LOAD}.json does not hold"):
        Replays(Turns(), tmp_path).recorded_curve(LOAD)
    assert Replays(Turns(), tmp_path).recorded(LOAD) == ()


def test_shipped_files_are_small():
    sizes = [path.stat().st_size for path in RECORDED_DIR.iterdir()]
    assert max(sizes) < 400_000 and sum(sizes) < 2_000_000


def test_the_session_replays_in_its_turn(tmp_path, runs):
    session = Session(Settings(cache_dir=tmp_path))
    told = []
    run = session.replay(ReplayRequest(LOAD, "saecache", SHARE), told.append)
    assert np.array_equal(run.requests.hit_tokens, runs[1].requests.hit_tokens) and told
    assert np.array_equal(replay(ReplayRequest(LOAD, "lru", SHARE)).requests.hit_tokens, runs[0].requests.hit_tokens)
    with pytest.raises(Cancelled):
        replay(ReplayRequest(LOAD, "lru", SHARE), cancelled=lambda: True)


def test_nothing_of_it_needs_torch():
    code = "import sys, engine.replays, engine.session; print([m for m in ('torch', 'gradio', 'plotly') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
