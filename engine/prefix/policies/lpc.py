"""LPC (NeurIPS 2025): p(session goes on) * exp(-0.01 * idle seconds), smallest leaves first; no fallback without a prediction.

A predictor is asked at every request. A block that several conversations share keeps the largest of their scores. Blocks of
requests without a prediction count as even. ln p + 0.01 t of the last use does not depend on the moment, so the order is fixed.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason
from engine.prefix.request import UNKNOWN, CacheRequest

LEAST_P, NO_PREDICTION = 1e-3, 0.5


@POLICIES.register("lpc")
@dataclass(frozen=True)
class LPC(EvictionPolicy):
    """Learned prefix caching.

    Args:
        decay_per_s: how fast a prediction loses weight.
    """

    decay_per_s: float = 0.01
    name: ClassVar[str] = "lpc"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "LPCRanker":
        return LPCRanker(columns, self.decay_per_s)


class LPCRanker(OrderedRanker):
    """Leaves by ln p + decay * time of last use."""

    def __init__(self, columns: BlockColumns, decay_per_s: float) -> None:
        super().__init__(columns)
        self._decay = decay_per_s
        self._value = np.zeros(columns.num_blocks)
        self._value_at = memoryview(self._value)

    def on_lookup(self, request: CacheRequest, num_hits: int) -> np.ndarray:
        c, path = self.columns, request.path
        return c.cached[path] & (c.owner[path] != request.session)

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: np.ndarray) -> None:
        span = request.path[:num_cached]
        p = NO_PREDICTION if request.follow_up == UNKNOWN else max(request.follow_up, LEAST_P)
        value = math.log(p) + self._decay * request.time_s
        self._value[span] = np.where(noted[:num_cached], np.maximum(self._value[span], value), value)

    def entry(self, block: int) -> tuple:
        at = self.columns.scalars
        return (self._value_at[block], at.tick[block], -at.depth[block], block)

    def explain(self, block: int, now_s: float) -> Reason:
        score = math.exp(min(self._value_at[block] - self._decay * now_s, 0.0))
        return Reason(f"evicted: the chance that its session goes on, faded with time, is {score:.4f}, the least of all.", {"score": score})
