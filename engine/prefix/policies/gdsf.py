"""GDSF (greedy dual size frequency, Cherkasova 1998): H = L + frequency * cost / size, smallest H leaves, L = the last victim's H.

All blocks are one size; the cost is a block's marginal prefill time at its offset, relative to the first block's.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.cost import PUBLISHED_8B
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason
from engine.prefix.request import CacheRequest


@POLICIES.register("gdsf")
@dataclass(frozen=True)
class GDSF(EvictionPolicy):
    """Greedy dual by frequency and cost."""

    name: ClassVar[str] = "gdsf"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "GDSFRanker":
        return GDSFRanker(columns)


class GDSFRanker(OrderedRanker):
    """Leaves by H, set whenever a block is touched."""

    def __init__(self, columns: BlockColumns) -> None:
        super().__init__(columns)
        depths = np.arange(columns.num_blocks)
        cost = PUBLISHED_8B.marginal_s(depths * columns.block_tokens, columns.block_tokens)
        self._cost = cost / cost[0]
        self._value = np.zeros(columns.num_blocks)
        self._value_at = memoryview(self._value)
        self._inflation = 0.0

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: Any) -> None:
        span = request.path[:num_cached]
        self._value[span] = self._inflation + (self.columns.hits[span] + 1) * self._cost[self.columns.depth[span]]

    def entry(self, block: int) -> tuple:
        at = self.columns.scalars
        return (self._value_at[block], at.tick[block], -at.depth[block], block)

    def evict(self, block: int, now_s: float) -> None:
        self._inflation = self._value_at[block]
        super().evict(block, now_s)

    def explain(self, block: int, now_s: float) -> Reason:
        hits, value = self.columns.scalars.hits[block], self._value_at[block]
        return Reason(f"evicted: {hits} hits times its prefill cost is worth least (H = {value:.2f}).", {"H": value, "hits": float(hits)})
