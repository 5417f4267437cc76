"""LHD-like (NSDI 2018): hit density by age, learned for classes of blocks by their hits; the least of 64 sampled leaves.

Density at age a is P(hit later | idle a) / E[time held | idle a], from hits and evictions counted by age. Without ghosts, an evicted
block counts as one that was not hit. Sampling is seeded; densities are worked out every 100 requests, counts halve in 2,000.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import NOTHING, POLICIES, EvictionPolicy, Future, Ranker, Reason
from engine.prefix.request import CacheRequest
from engine.prefix.saeg.buckets import HI, LO, NUM_BUCKETS, WIDTH, bucket

NUM_CLASSES, NUM_SAMPLED = 4, 64
UPDATE_EVERY, HALF_LIFE = 100, 2_000
_MIDDLE = (LO + HI) / 2


@POLICIES.register("lhd")
@dataclass(frozen=True)
class LHD(EvictionPolicy):
    """Least hit density.

    Args:
        seed: of the sampling.
    """

    seed: int = 0
    name: ClassVar[str] = "lhd"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "LHDRanker":
        return LHDRanker(columns, self.seed)


class LHDRanker(Ranker):
    """Leaves in a list that can be sampled, counts by class and age."""

    def __init__(self, columns: BlockColumns, seed: int) -> None:
        self.columns = columns
        self._random = np.random.default_rng(seed)
        self._leaves = np.zeros(columns.num_blocks, np.int32)
        self._leaf_at = memoryview(self._leaves)
        self._place: dict[int, int] = {}
        self._hits, self._ends = np.zeros((NUM_CLASSES, NUM_BUCKETS)), np.zeros((NUM_CLASSES, NUM_BUCKETS))
        # Cold, density falls with age as 1/age: LRU among the sampled.
        self._density = np.tile(1.0 / (_MIDDLE + 1.0), (NUM_CLASSES, 1))
        self._num_requests = 0
        self._chosen = NOTHING

    def on_lookup(self, request: CacheRequest, num_hits: int) -> None:
        hits = request.path[:num_hits]
        classes = np.minimum(self.columns.hits[hits], NUM_CLASSES - 1)
        ages = _buckets(request.time_s - self.columns.last_s[hits])
        self._hits += np.bincount(classes * NUM_BUCKETS + ages, minlength=self._hits.size).reshape(self._hits.shape)
        self._num_requests += 1
        if self._num_requests % UPDATE_EVERY == 0:
            self._update()
        self._chosen = NOTHING

    def add_leaf(self, block: int) -> None:
        self._leaf_at[len(self._place)] = block
        self._place[block] = len(self._place)

    def drop_leaf(self, block: int) -> None:
        place = self._place.pop(block)
        last = self._leaf_at[len(self._place)]
        if last != block:
            self._leaf_at[place] = last
            self._place[last] = place
        self._chosen = NOTHING

    def victim(self, now_s: float) -> int:
        num = len(self._place)
        if not num:
            return NOTHING
        if self._chosen == NOTHING:
            drawn = self._leaves[:num] if num <= NUM_SAMPLED else self._leaves[(self._random.random(NUM_SAMPLED) * num).astype(np.int64)]
            worth = self._worths(drawn, now_s)
            least = drawn[worth == worth.min()]
            self._chosen = int(least[np.lexsort((least, -self.columns.depth[least], self.columns.tick[least]))[0]])
        return self._chosen

    def evict(self, block: int, now_s: float) -> None:
        self._ends[self._class(block), bucket(now_s - self.columns.scalars.last_s[block])] += 1.0
        super().evict(block, now_s)

    def candidates(self) -> Iterator[int]:
        return iter(self._place)

    def explain(self, block: int, now_s: float) -> Reason:
        density = 3600.0 * float(self._worths(np.array([block]), now_s)[0])
        return Reason(
            f"evicted: {density:.3g} hits per block-hour are expected, the least of those sampled.", {"hits_per_block_hour": density}
        )

    def _class(self, block: int) -> int:
        return min(self.columns.scalars.hits[block], NUM_CLASSES - 1)

    def _worths(self, blocks: np.ndarray, now_s: float) -> np.ndarray:
        classes = np.minimum(self.columns.hits[blocks], NUM_CLASSES - 1)
        return self._density[classes, _buckets(now_s - self.columns.last_s[blocks])]

    def _update(self) -> None:
        """Density of an age: hits at it or later, over the time held from it until a hit or an eviction."""
        ended = self._hits + self._ends
        later_hits, later_ends = (np.cumsum(part[:, ::-1], 1)[:, ::-1] for part in (self._hits, ended))
        # What is idle at the start of a bucket spends its width there unless it ends in it, then half.
        held = np.cumsum(((later_ends - 0.5 * ended) * WIDTH)[:, ::-1], 1)[:, ::-1]
        cold = 1.0 / (_MIDDLE + 1.0)
        self._density = (later_hits + cold) / (held + 1.0)
        self._hits *= 0.5 ** (UPDATE_EVERY / HALF_LIFE)
        self._ends *= 0.5 ** (UPDATE_EVERY / HALF_LIFE)


def _buckets(age_s: np.ndarray) -> np.ndarray:
    return np.maximum(np.searchsorted(LO, age_s, side="right") - 1, 0)
