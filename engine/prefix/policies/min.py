"""MIN on trees (Belady 1966): the limit of block hits, seen from requests to come.

Evicts the leaf whose next use is farthest and leaves a new block out whose next use is farther than every leaf's. A parent
is looked up whenever its child is, so a block of farthest next use is always a leaf: keeping to leaves costs nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason
from engine.prefix.request import CacheRequest


@POLICIES.register("min")
@dataclass(frozen=True)
class MIN(EvictionPolicy):
    """Farthest next use, with bypass; optimal for block hits, not for hits weighted by tokens or seconds."""

    name: ClassVar[str] = "min"
    needs_future: ClassVar[bool] = True

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "MINRanker":
        assert future is not None
        return MINRanker(columns, future)


class MINRanker(OrderedRanker):
    """Leaves by next use, farthest first."""

    selective = True

    def __init__(self, columns: BlockColumns, future: Future) -> None:
        super().__init__(columns)
        self._future = future
        self._next = np.zeros(columns.num_blocks, np.int64)
        self._next_at = memoryview(self._next)

    def on_lookup(self, request: CacheRequest, num_hits: int) -> None:
        start = self._future.starts[request.index]
        self._next[request.path] = self._future.next_use[start : start + len(request.path)]

    def entry(self, block: int) -> tuple:
        return (-self._next_at[block], -self.columns.scalars.depth[block], block)

    def prefers(self, block: int, victim: int) -> bool:
        return self._next_at[block] < self._next_at[victim]

    def explain(self, block: int, now_s: float) -> Reason:
        return Reason("evicted: asked for again later than any other block that may leave.", {"next_use": float(self._next_at[block])})
