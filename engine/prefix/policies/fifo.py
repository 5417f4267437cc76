"""FIFO: the leaf that was inserted first, the deepest first (SGLang's `fifo`)."""

from dataclasses import dataclass
from typing import ClassVar

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason


@POLICIES.register("fifo")
@dataclass(frozen=True)
class FIFO(EvictionPolicy):
    """First in, first out."""

    name: ClassVar[str] = "fifo"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "FIFORanker":
        return FIFORanker(columns)


class FIFORanker(OrderedRanker):
    """Leaves by the tick of their insertion."""

    def entry(self, block: int) -> tuple:
        at = self.columns.scalars
        return (at.born[block], -at.depth[block], block)

    def explain(self, block: int, now_s: float) -> Reason:
        born = self.columns.scalars.born[block]
        return Reason(f"evicted: inserted by request {born}, before any other block that may leave.", {"born": float(born)})
