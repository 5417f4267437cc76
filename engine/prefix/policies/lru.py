"""LRU: the leaf that was used longest ago, the deepest first (vLLM's free list, SGLang's `lru`)."""

from dataclasses import dataclass
from typing import ClassVar

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason


@POLICIES.register("lru")
@dataclass(frozen=True)
class LRU(EvictionPolicy):
    """Least recently used."""

    name: ClassVar[str] = "lru"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "LRURanker":
        return LRURanker(columns)


class LRURanker(OrderedRanker):
    """Leaves by the tick of their last use; a request touches its whole path at once, so ties go to the deepest."""

    def __init__(self, columns: BlockColumns) -> None:
        super().__init__(columns)
        self._tick, self._depth = columns.scalars.tick, columns.scalars.depth

    def entry(self, block: int) -> tuple:
        return (self._tick[block], -self._depth[block], block)

    def explain(self, block: int, now_s: float) -> Reason:
        idle_s = now_s - self.columns.scalars.last_s[block]
        return Reason(f"evicted: not used for {idle_s:,.0f} s, longer than any other block that may leave.", {"idle_s": idle_s})
