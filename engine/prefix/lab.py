"""Replays policies over one workload and judges them against the limit: what `Session.replay` and the benchmark are made of."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.cache_types import CacheRun, ReplayRequest
from engine.prefix.blocks import capacity_in_blocks
from engine.prefix.cost import PUBLISHED_8B, PrefillCost
from engine.prefix.judge import judge
from engine.prefix.policies import POLICIES
from engine.prefix.policy import EvictionPolicy
from engine.prefix.predictor_rule import SessionRule, load_rule
from engine.prefix.replay import Replay, replay
from engine.prefix.sglang_tree import PREFIX, InSGLang, is_installed
from engine.prefix.uses import block_uses
from engine.prefix.workloads.arrivals import Arrivals
from engine.prefix.workloads.catalog import load_workload
from engine.prefix.workloads.chats import Tokenize
from engine.prefix.workloads.workload import Workload

LIMIT = "min"
SGLANG_NAMES = ("sglang_lru", "sglang_saecache")
Progress = Callable[[float], bool]
LabPolicy = EvictionPolicy | InSGLang


def lab_names() -> tuple[str, ...]:
    """Returns the names of all that can be replayed: every policy, and SGLang's tree where it is installed."""
    return (*POLICIES.names(), *(SGLANG_NAMES if is_installed() else ()))


def lab_policy(name: str, **params: bool | float | int | str) -> LabPolicy:
    """Returns what is replayed by name; SGLang's tree takes no parameters. Raises UnknownName, BadRequest."""
    return InSGLang.named(name) if name.startswith(PREFIX) else POLICIES.create(name, **params)


class ReplayLab:
    """One workload with its predictions, its uses and the limit's replays, each worked out once.

    Args:
        accuracy: of an oracle that is told wrong as often as said, None without a predictor.
        cost: of a prefill, for modelled times.
        rule: that predicts from turn, length and tools instead.
    """

    def __init__(
        self,
        workload: Workload,
        seed: int = 0,
        accuracy: float | None = None,
        cost: PrefillCost = PUBLISHED_8B,
        rule: SessionRule | None = None,
    ) -> None:
        self.seed, self.cost = seed, cost
        if rule is not None:
            self.workload = rule.predicted(workload)
            self.predictor = f"{rule.described}, right on {self.workload.share_right:.1%} of this load's requests"
        else:
            self.workload = workload if accuracy is None else workload.predicted(accuracy, seed)
            self.predictor = "none" if accuracy is None else ("oracle" if accuracy == 1.0 else f"oracle with {accuracy:.0%} accuracy")
        self.uses = block_uses(self.workload)
        self._limits: dict[int, Replay] = {}

    def capacity(self, capacity: float) -> int:
        """Returns a capacity in blocks. Raises BadRequest."""
        return capacity_in_blocks(capacity, self.workload.num_blocks)

    def limit(self, capacity: int, progress: Progress | None = None) -> Replay:
        """Returns MIN's replay at a capacity in blocks."""
        if capacity not in self._limits:
            self._limits[capacity] = replay(self.workload, POLICIES.create(LIMIT), capacity, self.uses, progress)
        return self._limits[capacity]

    def run(self, policy: LabPolicy, capacity: int, progress: Progress | None = None, cost: PrefillCost | None = None) -> CacheRun:
        """Returns a policy's run at a capacity in blocks, its times modelled by `cost`, the lab's own without it. Raises Cancelled."""
        limit = self.limit(capacity, progress)
        if isinstance(policy, InSGLang):
            done = policy.replay(self.workload, capacity, progress)
        else:
            done = limit if policy.name == LIMIT else replay(self.workload, policy, capacity, self.uses, progress)
        return judge(self.workload, self.uses, policy, capacity, done, cost or self.cost, self.seed, self.predictor, limit)


def run_replay(
    request: ReplayRequest,
    progress: Progress | None = None,
    cost: PrefillCost = PUBLISHED_8B,
    arrivals: Arrivals | None = None,
    tokenize: Tokenize | None = None,
) -> CacheRun:
    """Returns the run a request asks for. Raises BadRequest, UnknownName, Cancelled.

    Args:
        progress: called with the share done; the replay stops where it returns False.
        cost: of the running model's prefill, where it was measured.
    """
    policy = lab_policy(request.policy, **request.params)
    reading = None if progress is None else lambda _: progress(0.0)
    workload = load_workload(request.workload, request.seed, arrivals, tokenize, reading)
    lab = ReplayLab(workload, request.seed, request.accuracy, cost, load_rule() if request.by_rule else None)
    return lab.run(policy, lab.capacity(request.capacity), progress)


def gap_closed(run: CacheRun, lru: CacheRun) -> float | None:
    """Returns (run - LRU) / (MIN - LRU) in block hits of the second half, None where MIN finds no more than LRU."""
    half = run.num_requests // 2
    hits = [int(values[half:].sum()) for values in (run.requests.hit_blocks, lru.requests.hit_blocks, _limit_hits(run))]
    return (hits[0] - hits[1]) / (hits[2] - hits[1]) if hits[2] > hits[1] else None


def _limit_hits(run: CacheRun) -> np.ndarray:
    assert run.limit_hit_blocks is not None, "the run was judged without the limit"
    return run.limit_hit_blocks


def run_name(run: CacheRun) -> str:
    """Returns a file name for a run."""
    return f"{Path(run.workload).name}-{run.policy}-{run.capacity_blocks}-{run.seed}.cache.json.gz"
