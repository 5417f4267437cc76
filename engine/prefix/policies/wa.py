"""WA, "KVCache cache in the wild" (ATC 2025): one LRU list a category, the heads compared by their chance of reuse soon.

A category is (session kind, turn) as its blocks were last used. Reuse times of a category are taken as exponential with the mean
seen so far, scaled by the share of its uses that were followed by another; a head is worth the probability that falls into the
coming window, F(idle + window) - F(idle). Ties: the deeper block leaves. The window is the running mean idle time at eviction,
and the counts' half-life 2,000 requests (our choices).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.heads import ClassHeads, ClassRanker
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, Reason
from engine.prefix.request import CacheRequest

NUM_TURNS = 8
NUM_CATEGORIES = 2 * NUM_TURNS
FIRST_MEAN_S, FIRST_WINDOW_S, WINDOW_RATE = 60.0, 60.0, 0.02
HALF_LIFE, UPDATE_EVERY = 2_000, 50


@POLICIES.register("wa")
@dataclass(frozen=True)
class WA(EvictionPolicy):
    """Workload-aware eviction."""

    name: ClassVar[str] = "wa"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "WARanker":
        return WARanker(columns)


class WARanker(ClassRanker):
    """Categories and what was learned of their reuse."""

    def __init__(self, columns: BlockColumns) -> None:
        self.columns = columns
        self.heads = ClassHeads(columns, self.score)
        self._category = np.zeros(columns.num_blocks, np.uint8)
        self.class_at, self._last_at = memoryview(self._category), columns.scalars.last_s
        self._used, self._reused, self._waited_s = (np.zeros(NUM_CATEGORIES) for _ in range(3))
        self._share, self._mean_s = [0.5] * NUM_CATEGORIES, [FIRST_MEAN_S] * NUM_CATEGORIES
        self._window_s = FIRST_WINDOW_S
        self._num_requests = 0

    def on_lookup(self, request: CacheRequest, num_hits: int) -> None:
        hits = request.path[:num_hits]
        category = self._category[hits]
        gaps = request.time_s - self.columns.last_s[hits]
        self._reused += np.bincount(category, minlength=NUM_CATEGORIES)
        self._waited_s += np.bincount(category, gaps, NUM_CATEGORIES)
        self._num_requests += 1
        if self._num_requests % UPDATE_EVERY == 0:
            self._update()
        self.heads.restart()

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: Any) -> None:
        category = NUM_TURNS * request.is_agent + min(request.turn, NUM_TURNS - 1)
        self._category[request.path[:num_cached]] = category
        self._used[category] += num_cached

    def score(self, number: int, block: int, now_s: float) -> float:
        """Returns the probability that a head is used again within the window."""
        mean_s = self._mean_s[number]
        return self._share[number] * math.exp(-(now_s - self._last_at[block]) / mean_s) * -math.expm1(-self._window_s / mean_s)

    def on_evicted(self, blocks: list[int], now_s: float) -> None:
        self.heads.restart()
        idle_s = now_s - self._last_at[blocks[-1]]
        self._window_s += WINDOW_RATE * (idle_s - self._window_s)

    def weights(self) -> dict[str, float]:
        return {"window_s": self._window_s}

    def explain(self, block: int, now_s: float) -> Reason:
        number = self.heads.class_of(block)
        kind, turn = ("agent", "chat")[number < NUM_TURNS], number % NUM_TURNS
        chance = self.score(number, block, now_s)
        return Reason(
            f"evicted: blocks of {kind} turn {turn} come back after {self._mean_s[number]:,.0f} s on average; chance of reuse within "
            f"{self._window_s:,.0f} s is {chance:.4f}, the least of all.",
            {"chance": chance, "mean_s": self._mean_s[number], "window_s": self._window_s},
        )

    def _update(self) -> None:
        for i in np.flatnonzero(self._used).tolist():
            self._share[i] = min(float((self._reused[i] + 1.0) / (self._used[i] + 2.0)), 1.0)
            if self._reused[i] > 0.0:
                self._mean_s[i] = max(float(self._waited_s[i] / self._reused[i]), 1e-3)
        for counts in (self._used, self._reused, self._waited_s):
            counts *= 0.5 ** (UPDATE_EVERY / HALF_LIFE)
