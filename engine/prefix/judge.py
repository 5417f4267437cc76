"""What a replay means: hits in tokens, modelled times, why blocks missed, and which evictions the limit would have regretted.

All of it is computed from the replay and the workload after the fact; no policy sees any of it.
"""

import datetime
from typing import Protocol

import numpy as np

from engine.cache_types import AgeHistogram, CacheRun, EvictionLog, RequestLog
from engine.checkout import commit
from engine.prefix.cost import PrefillCost
from engine.prefix.replay import Replay
from engine.prefix.saeg.buckets import HI, NUM_BUCKETS
from engine.prefix.uses import Uses
from engine.prefix.workloads.workload import Workload


class Judged(Protocol):
    """What was replayed: a policy, or a tree under one."""

    @property
    def name(self) -> str:
        """Returns what it is called in results."""
        ...

    def params(self) -> dict[str, bool | float | int | str]:
        """Returns its configuration, field by field."""
        ...


def judge(
    workload: Workload,
    uses: Uses,
    policy: Judged,
    capacity: int,
    done: Replay,
    cost: PrefillCost,
    seed: int = 0,
    predictor: str = "none",
    limit: Replay | None = None,
) -> CacheRun:
    """Returns the run of a policy.

    Args:
        limit: MIN's replay of the same workload at the same capacity; without it no eviction is regretted.
    """
    return CacheRun(
        mode="simulated",
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=commit(),
        workload=workload.name,
        notes=workload.notes,
        policy=policy.name,
        params=policy.params(),
        predictor=predictor,
        cost=f"{cost.name}: {cost.source}",
        seed=seed,
        capacity_blocks=capacity,
        block_tokens=workload.block_size,
        num_blocks=workload.num_blocks,
        requests=request_log(workload, uses, done, cost),
        evictions=eviction_log(workload, uses, done, limit),
        snapshots=done.snapshots,
        ages=age_histogram(workload, uses, done),
        limit_hit_blocks=None if limit is None else limit.num_hits,
        elapsed_s=done.elapsed_s,
    )


def request_log(workload: Workload, uses: Uses, done: Replay, cost: PrefillCost) -> RequestLog:
    """Returns hits, misses and modelled times of every request. A hit on a partial last block counts its tokens."""
    hit_tokens = np.minimum(done.num_hits * workload.block_size, workload.num_tokens).astype(np.int32)
    return RequestLog(
        time_s=workload.time_s,
        session=workload.session,
        prompt_blocks=workload.num_prompt,
        hit_blocks=done.num_hits,
        prompt_tokens=workload.num_tokens,
        hit_tokens=hit_tokens,
        num_inserted=done.num_inserted,
        ttft_s=cost.ttft_s(workload.num_tokens, hit_tokens).astype(np.float32),
        missed_tokens=_missed_tokens(workload, uses, done.num_hits),
    )


def eviction_log(workload: Workload, uses: Uses, done: Replay, limit: Replay | None) -> EvictionLog:
    """Returns what became of every evicted block.

    An eviction is regretted where the next request for the block finds it in MIN's cache: there the policy lost a hit
    that could be had.
    """
    before, after = _neighbours(workload, uses, done.evicted, done.evicted_at)
    last_s = workload.time_s[uses.request[before]]
    returns = after >= 0
    suffered = np.where(returns, uses.request[after], -1)
    time_s = workload.time_s[done.evicted_at]
    regret = np.zeros(len(before), np.bool_)
    if limit is not None:
        regret = returns & (uses.position[after] < limit.num_hits[suffered])
    return EvictionLog(
        request=done.evicted_at,
        block=done.evicted,
        kind=workload.kind[done.evicted],
        queue=done.evicted_queue,
        depth=workload.depth[done.evicted],
        hits=done.evicted_hits,
        idle_s=(time_s - last_s).astype(np.float32),
        suffered=suffered.astype(np.int32),
        early_s=np.where(returns, workload.time_s[suffered] - time_s, 0.0).astype(np.float32),
        regret=regret,
    )


def age_histogram(workload: Workload, uses: Uses, done: Replay) -> AgeHistogram:
    """Returns how long blocks had been idle when they were hit and when they were evicted."""
    is_hit = uses.position < done.num_hits[uses.request]
    hit_ages = workload.time_s[uses.request[is_hit]] - workload.time_s[uses.request[uses.previous[is_hit]]]
    before, _ = _neighbours(workload, uses, done.evicted, done.evicted_at)
    evicted_ages = workload.time_s[done.evicted_at] - workload.time_s[uses.request[before]]
    counts = [np.bincount(np.searchsorted(HI[:-1], ages, side="right"), minlength=NUM_BUCKETS) for ages in (hit_ages, evicted_ages)]
    return AgeHistogram(HI.copy(), counts[0].astype(np.int64), counts[1].astype(np.int64))


def _neighbours(workload: Workload, uses: Uses, blocks: np.ndarray, requests: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns for each block the place of its last use before a request, and of its next look-up from then on, -1 without one."""
    num_requests = workload.num_requests + 1
    keys = workload.path.astype(np.int64) * num_requests + uses.request
    order = np.argsort(keys, kind="stable")
    wanted = blocks.astype(np.int64) * num_requests + requests
    before = order[np.searchsorted(keys[order], wanted) - 1]
    lookups = order[uses.is_lookup[order]]
    at = np.searchsorted(keys[lookups], wanted, side="right")
    after = np.append(lookups, -1)[at]
    same = (after >= 0) & (workload.path[after] == blocks)
    return before, np.where(same, after, -1)


def _missed_tokens(workload: Workload, uses: Uses, num_hits: np.ndarray) -> np.ndarray:
    """Returns missed prompt tokens int32 [R, 4] by cause: cold, evicted, changed prefix, shorter than a block."""
    missed = uses.is_lookup & (uses.position >= num_hits[uses.request])
    was_seen = uses.previous >= 0
    moved = np.zeros(len(missed), np.bool_)
    if workload.content is not None:
        content = workload.content[workload.path]
        _, first, inverse = np.unique(content, return_index=True, return_inverse=True)
        moved = uses.request[first[inverse]] < uses.request
    size, num = workload.block_size, workload.num_requests
    tokens = np.clip(workload.num_tokens[uses.request] - uses.position * size, 0, size)
    causes = (missed & ~was_seen & ~moved, missed & was_seen, missed & ~was_seen & moved)
    columns = [np.bincount(uses.request[cause], tokens[cause], num) for cause in causes]
    tail = np.maximum(workload.num_tokens - workload.num_prompt * size, 0)
    return np.stack([*columns, tail], 1).astype(np.int32)
