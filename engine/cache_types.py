"""Frozen values of the prefix cache that cross a border: requests to replay, and what came of them.

Knows numpy and nothing of policies, models or pictures. R requests, E evictions, S moments, W learned weights. Times are seconds;
offsets and sizes are blocks.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.errors import BadRequest

CacheMode = Literal["live", "simulated"]
QUEUE_NAMES = ("evict first", "structural", "chat", "agent")
KIND_NAMES = ("system", "user", "tool output", "response", "thinking")
MAX_SEED = 2**63
MOST_LIVE_REQUESTS, MOST_LIVE_REPEATS = 200, 5
MISS_NAMES = ("cold", "evicted", "changed prefix", "shorter than a block")


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A replay that is asked for.

    Args:
        workload: name of a generated workload, or path of a log.
        policy: by name; capacity: a share of the distinct blocks below 1, a number of blocks from 1 on.
        accuracy: of an oracle in the session predictor's place, 0 to 1, None without one.
        by_rule: the shipped logistic rule predicts, not an oracle; `accuracy` is None then.
        params: of the policy, by field.
    """

    workload: str
    policy: str
    capacity: float
    seed: int = 0
    accuracy: float | None = 0.77
    params: dict[str, bool | float | int | str] = field(default_factory=dict)
    by_rule: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.capacity) and self.capacity > 0):
            raise BadRequest(f"The capacity is {self.capacity}; give a share of the distinct blocks below 1, or a number of blocks.")
        if not isinstance(self.seed, int) or not 0 <= self.seed < MAX_SEED:
            raise BadRequest(f"The seed is {str(self.seed)[:40]}; it must be a whole number from 0 to {MAX_SEED - 1:,}.")
        if self.accuracy is not None and not 0.0 <= self.accuracy <= 1.0:
            raise BadRequest(f"The predictor's accuracy is {self.accuracy}; it must be a number from 0 to 1.")


@dataclass(frozen=True, slots=True)
class LiveAsk:
    """A live run that is asked for: scripted sessions through the loaded model behind one prefix cache a policy.

    Args:
        policies: by name, the first one being what the others are held against.
        num_requests: 1 to MOST_LIVE_REQUESTS; capacity: a share of the distinct blocks below 1, a number of blocks from 1 on.
        repeats: prefills of every request, of which the median time counts.
    """

    policies: tuple[str, ...] = ("lru", "saecache")
    num_requests: int = 40
    capacity: float = 0.25
    seed: int = 0
    repeats: int = 1

    def __post_init__(self) -> None:
        if not self.policies or len(set(self.policies)) < len(self.policies):
            raise BadRequest(f"The live run names {len(self.policies)} policies; give at least one, none of them twice.")
        if not 1 <= self.num_requests <= MOST_LIVE_REQUESTS:
            raise BadRequest(f"The live run has {self.num_requests} requests; give 1 to {MOST_LIVE_REQUESTS}.")
        if not (math.isfinite(self.capacity) and self.capacity > 0):
            raise BadRequest(f"The capacity is {self.capacity}; give a share of the distinct blocks below 1, or a number of blocks.")
        if not 1 <= self.repeats <= MOST_LIVE_REPEATS:
            raise BadRequest(f"Every prefill is to be timed {self.repeats} times; give 1 to {MOST_LIVE_REPEATS}.")


@dataclass(frozen=True, slots=True)
class LivePoint:
    """One request under one policy, as it happens.

    Args:
        index: of the request; kind: of its session; ttft_s: measured.
        hit_tokens: prompt tokens that were not computed; num_evicted: blocks that left for it.
        queues: cached blocks by QUEUE_NAMES behind it; num_free: blocks free then.
    """

    policy: str
    index: int
    kind: str
    ttft_s: float
    prompt_tokens: int
    hit_tokens: int
    num_evicted: int
    queues: tuple[int, int, int, int]
    num_free: int


@dataclass(frozen=True, eq=False, slots=True)
class RequestLog:
    """What became of each request.

    Args:
        time_s: float64 [R]; session, prompt_blocks, hit_blocks, prompt_tokens, hit_tokens, num_inserted: int32 [R].
        ttft_s: float32 [R], modelled or measured, see `CacheRun.cost`.
        missed_tokens: int32 [R, 4], by MISS_NAMES; with hit_tokens they add up to prompt_tokens.
    """

    time_s: np.ndarray
    session: np.ndarray
    prompt_blocks: np.ndarray
    hit_blocks: np.ndarray
    prompt_tokens: np.ndarray
    hit_tokens: np.ndarray
    num_inserted: np.ndarray
    ttft_s: np.ndarray
    missed_tokens: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class EvictionLog:
    """What became of each evicted block.

    Args:
        request: int32 [E], during which request it left; block: int32 [E].
        kind, queue: uint8 [E]; depth, hits: int32 [E], hits since it was inserted; idle_s: float32 [E], since its last use.
        suffered: int32 [E], the next request that looked it up, -1 without one; early_s: float32 [E], how long before that it left.
        regret: bool [E], whether the limit MIN still had the block at that request.
    """

    request: np.ndarray
    block: np.ndarray
    kind: np.ndarray
    queue: np.ndarray
    depth: np.ndarray
    hits: np.ndarray
    idle_s: np.ndarray
    suffered: np.ndarray
    early_s: np.ndarray
    regret: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class CacheSnapshots:
    """What the cache held at S moments: after which request int32 [S], blocks by queue int32 [S, 4] and by type int32 [S, 5],
    learned weights float32 [S, W] by name."""

    request: np.ndarray
    queues: np.ndarray
    kinds: np.ndarray
    weight_names: tuple[str, ...]
    weights: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class AgeHistogram:
    """Idle times in growing buckets: upper ends float64 [n] in s, blocks hit and blocks evicted in each, int64 [n]."""

    upper_s: np.ndarray
    num_hit: np.ndarray
    num_evicted: np.ndarray


@dataclass(frozen=True, slots=True)
class CacheScore:
    """Rates over requests: all of them, or the second half. modelled_ttft_s is the mean."""

    hit_tokens: float
    hit_blocks: float
    modelled_ttft_s: float


@dataclass(frozen=True, eq=False, slots=True)
class CacheRun:
    """One policy over one workload in a cache of one size: everything any picture of it needs.

    Args:
        mode: simulated, or live where a model served the requests; created, commit: when and by which version.
        params: of the policy; predictor: which one, with its accuracy; cost: where prefill seconds come from.
        num_blocks: distinct ones of the workload.
        limit_hit_blocks: int32 [R], blocks MIN finds at each request, None where it was not run.
        elapsed_s: processor time of the whole replay, look-ups and learning included.
    """

    mode: CacheMode
    created: str
    commit: str
    workload: str
    notes: tuple[str, ...]
    policy: str
    params: dict[str, bool | float | int | str]
    predictor: str
    cost: str
    seed: int
    capacity_blocks: int
    block_tokens: int
    num_blocks: int
    requests: RequestLog
    evictions: EvictionLog
    snapshots: CacheSnapshots
    ages: AgeHistogram
    limit_hit_blocks: np.ndarray | None
    elapsed_s: float

    @property
    def num_requests(self) -> int:
        """Returns R."""
        return len(self.requests.time_s)

    @property
    def us_per_eviction(self) -> float | None:
        """Returns microseconds of processor time for each eviction, look-ups and learning included."""
        num = len(self.evictions.block)
        return 1e6 * self.elapsed_s / num if num else None

    def score(self, start: int = 0) -> CacheScore:
        """Returns rates over the requests from `start` on."""
        r = self.requests
        return CacheScore(
            hit_tokens=float(r.hit_tokens[start:].sum() / max(int(r.prompt_tokens[start:].sum()), 1)),
            hit_blocks=float(r.hit_blocks[start:].sum() / max(int(r.prompt_blocks[start:].sum()), 1)),
            modelled_ttft_s=float(r.ttft_s[start:].mean()) if len(r.ttft_s[start:]) else 0.0,
        )

    @property
    def second_half(self) -> CacheScore:
        """Returns rates over the last half of the requests, when the cache is warm."""
        return self.score(self.num_requests // 2)
