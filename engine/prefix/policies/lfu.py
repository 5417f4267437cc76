"""LFU: the leaf with the fewest hits since it was inserted, ties by last use (SGLang's `lfu`)."""

from dataclasses import dataclass
from typing import ClassVar

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason


@POLICIES.register("lfu")
@dataclass(frozen=True)
class LFU(EvictionPolicy):
    """Least frequently used."""

    name: ClassVar[str] = "lfu"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "LFURanker":
        return LFURanker(columns)


class LFURanker(OrderedRanker):
    """Leaves by (hits, last use)."""

    def entry(self, block: int) -> tuple:
        at = self.columns.scalars
        return (at.hits[block], at.tick[block], -at.depth[block], block)

    def explain(self, block: int, now_s: float) -> Reason:
        hits = self.columns.scalars.hits[block]
        return Reason(f"evicted: {hits} hits since it was inserted, no more than any other block that may leave.", {"hits": float(hits)})
