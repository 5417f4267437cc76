"""SLRU: blocks not hit since they were inserted leave before the others, LRU in each part (SGLang's `slru`, which counts from 1)."""

from dataclasses import dataclass
from typing import ClassVar

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason


@POLICIES.register("slru")
@dataclass(frozen=True)
class SLRU(EvictionPolicy):
    """Segmented LRU.

    Args:
        protected_hits: hits since insertion from which on a block is protected.
    """

    protected_hits: int = 1
    name: ClassVar[str] = "slru"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "SLRURanker":
        return SLRURanker(columns, self.protected_hits)


class SLRURanker(OrderedRanker):
    """Leaves by (protected or not, last use)."""

    def __init__(self, columns: BlockColumns, protected_hits: int) -> None:
        super().__init__(columns)
        self._protected_hits = protected_hits

    def entry(self, block: int) -> tuple:
        at = self.columns.scalars
        return (at.hits[block] >= self._protected_hits, at.tick[block], -at.depth[block], block)

    def explain(self, block: int, now_s: float) -> Reason:
        hits = self.columns.scalars.hits[block]
        part = "protected" if hits >= self._protected_hits else "probationary"
        return Reason(f"evicted: the least recently used {part} block ({hits} hits).", {"hits": float(hits)})
