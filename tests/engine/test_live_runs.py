"""Live runs for the page: a real tiny model behind two caches, told as it happens, waiting its turn, stoppable."""

import threading

import numpy as np
import pytest
from worlds import tiny_runtime

from engine.cache_types import CacheRun, LiveAsk, LivePoint
from engine.errors import BadRequest, Cancelled, UnknownName
from engine.live_runs import LiveRuns
from engine.prefix.predictor_rule import load_rule
from engine.turns import Turns
from engine.types import Status

ASK = LiveAsk(("lru", "saecache"), num_requests=6)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    runtime = tiny_runtime(tmp_path_factory.mktemp("live"))
    return LiveRuns(Turns(), lambda: runtime)


@pytest.fixture(scope="module")
def events(live):
    return list(live.stream(ASK))


def test_every_request_is_told_under_both_policies_and_the_runs_come_last(events):
    points = [event for event in events if isinstance(event, LivePoint)]
    assert sorted((point.index, point.policy) for point in points) == [(i, name) for i in range(6) for name in ("lru", "saecache")]
    runs = [event for event in events if isinstance(event, CacheRun)]
    assert events[-2:] == runs and [run.policy for run in runs] == ["lru", "saecache"] and all(run.mode == "live" for run in runs)
    for run in runs:
        own = sorted((point for point in points if point.policy == run.policy), key=lambda point: point.index)
        np.testing.assert_allclose([point.ttft_s for point in own], run.requests.ttft_s, rtol=1e-6)
        assert [point.hit_tokens for point in own] == run.requests.hit_tokens.tolist()
        assert sum(point.num_evicted for point in own) == len(run.evictions.block)
        assert all(sum(point.queues) + point.num_free == run.capacity_blocks for point in own)


def test_progress_never_goes_back_and_names_what_is_served(events):
    said = [event for event in events if isinstance(event, Status)]
    assert [one.fraction for one in said] == sorted(one.fraction for one in said) and said[-1].message.startswith("Request ")


def test_without_a_network_of_its_own_the_rule_predicts_and_says_so(events):
    (run, _) = events[-2:]
    assert run.predictor.startswith(load_rule().described) and "of these 6 requests" in run.predictor


def test_the_same_ask_gives_the_same_hits(live, events):
    again = live.run(ASK)
    assert [run.requests.hit_blocks.tolist() for run in again] == [run.requests.hit_blocks.tolist() for run in events[-2:]]


def test_closing_the_stream_or_a_flag_stops_it_and_frees_the_engine(live):
    stream = live.stream(LiveAsk(num_requests=40))
    assert any(isinstance(event, LivePoint) for event in stream)
    stream.close()
    told, stopped = [], threading.Event()
    with pytest.raises(Cancelled):
        live.run(LiveAsk(num_requests=40), on_point=lambda point: told.append(point) or stopped.set(), cancelled=stopped.is_set)
    assert 1 <= len(told) <= 2
    with live._turns.turn(lambda ahead: None, lambda: False):
        pass


def test_it_waits_for_its_turn_and_can_be_stopped_there(live):
    said = []
    with live._turns.turn(lambda ahead: None, lambda: False), pytest.raises(Cancelled, match="Stopped while waiting"):
        live.run(ASK, said.append, cancelled=lambda: bool(said))
    assert said[0].queue_position == 1 and said[0].message == "Waiting: 1 request ahead"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"policies": ()}, "names 0 policies"),
        ({"policies": ("lru", "lru")}, "none of them twice"),
        ({"num_requests": 0}, "has 0 requests; give 1 to 200"),
        ({"capacity": float("nan")}, "The capacity is nan"),
        ({"repeats": 9}, "timed 9 times; give 1 to 5"),
    ],
)
def test_a_wrong_ask_is_one_sentence(changes, sentence):
    with pytest.raises(BadRequest, match=sentence):
        LiveAsk(**changes)


def test_policies_that_cannot_run_live_are_refused(live):
    assert "min" not in live.policy_names() and "saecache" in live.policy_names()
    with pytest.raises(BadRequest, match="'min' needs to know requests to come"):
        live.run(LiveAsk(("lru", "min")))
    with pytest.raises(UnknownName):
        live.run(LiveAsk(("lru", "best")))
