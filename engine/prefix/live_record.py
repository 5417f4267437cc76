"""Makes a CacheRun of what a server did with the requests of a live run: judged like a replay, with measured times."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine.cache_types import KIND_NAMES, QUEUE_NAMES, CacheRun, CacheSnapshots
from engine.prefix.cost import PrefillCost
from engine.prefix.judge import judge
from engine.prefix.policy import EvictionPolicy
from engine.prefix.replay import Replay
from engine.prefix.request import UNKNOWN
from engine.prefix.serve_types import Occupancy, Served
from engine.prefix.uses import Uses
from engine.prefix.workloads.workload import Workload


class LiveLog(NamedTuple):
    """What one server did, request by request: results, what the cache held behind each, what the policy had learned by then."""

    served: list[Served]
    held: list[Occupancy]
    weights: list[dict[str, float]]


def live_run(
    workload: Workload,
    uses: Uses,
    policy: EvictionPolicy,
    capacity: int,
    log: LiveLog,
    place: str,
    seed: int,
    predictor: str,
    limit: Replay | None,
) -> CacheRun:
    """Returns the run of a policy.

    Args:
        predictor: what predicted; how often it was right on these requests is added.
        place: model and machine on which the times were measured.
        limit: MIN's replay of the same workload at the same capacity.
    """
    measured = PrefillCost("measured", 0.0, 0.0, f"{place}, from the look-up to the first token, nobody else served meanwhile")
    run = judge(workload, uses, policy, capacity, as_replay(log), measured, seed, _worth(predictor, workload, log), limit)
    num_tokens, reused = workload.num_tokens, np.array([served.first.num_reused for served in log.served], np.int32)
    missed = run.requests.missed_tokens.copy()
    # A prompt that was found to its end still computes its last token.
    missed[:, 3] += num_tokens - reused - missed.sum(1, dtype=np.int32)
    ttft_s = np.array([served.first.ttft_s for served in log.served], np.float32)
    return replace(run, mode="live", requests=replace(run.requests, hit_tokens=reused, missed_tokens=missed, ttft_s=ttft_s))


def _worth(predictor: str, workload: Workload, log: LiveLog) -> str:
    """Returns what predicted, and on how many of these very requests it was right."""
    said = np.array([served.follow_up for served in log.served], np.float32)
    if not len(said) or (said == UNKNOWN).any():
        return predictor
    return f"{predictor}; right on {replace(workload, follow_up=said).share_right:.1%} of these {len(said):,} requests"


def as_replay(log: LiveLog) -> Replay:
    """Returns what a server did in the form that a replay has, a snapshot behind every request."""
    served, num = log.served, len(log.served)
    names = tuple(log.weights[0]) if log.weights else ()
    weights = np.array([[learned[name] for name in names] for learned in log.weights], np.float32).reshape(num, len(names))
    snapshots = CacheSnapshots(
        np.arange(num, dtype=np.int32),
        np.array([held.queues for held in log.held], np.int32).reshape(num, len(QUEUE_NAMES)),
        np.array([held.kinds for held in log.held], np.int32).reshape(num, len(KIND_NAMES)),
        names,
        weights,
    )
    return Replay(
        num_hits=np.array([s.hit_blocks for s in served], np.int32),
        num_inserted=np.array([s.num_inserted for s in served], np.int32),
        evicted=_joined([s.evicted for s in served], np.int32),
        evicted_at=np.repeat(np.arange(num, dtype=np.int32), [len(s.evicted) for s in served]),
        evicted_hits=_joined([s.evicted_hits for s in served], np.int32),
        evicted_queue=_joined([s.evicted_queue for s in served], np.uint8),
        snapshots=snapshots,
        elapsed_s=sum(s.tree_s for s in served),
    )


def _joined(parts: Sequence[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)
