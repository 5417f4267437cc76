"""T-LRU (tail-optimised LRU, vLLM #37823): keeps the first B = max(0, H + Q - xi) tokens of a conversation, the rest leaves first.

H is the conversation's length so far, Q the next prompt expected, xi the tokens whose prefill a request may take without its
time to first token suffering. LRU in each part. Made for the tail of TTFT, not for hits.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, OrderedRanker, Reason
from engine.prefix.request import CacheRequest


@POLICIES.register("t_lru")
@dataclass(frozen=True)
class TLRU(EvictionPolicy):
    """Tail-optimised LRU.

    Args:
        next_tokens: Q; budget_tokens: xi.
    """

    next_tokens: int = 200
    budget_tokens: int = 4096
    name: ClassVar[str] = "t_lru"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "TLRURanker":
        return TLRURanker(columns, self)


class TLRURanker(OrderedRanker):
    """Leaves by (kept or not, last use)."""

    def __init__(self, columns: BlockColumns, policy: TLRU) -> None:
        super().__init__(columns)
        self._policy = policy
        self._kept = np.zeros(columns.num_blocks, np.bool_)
        self._kept_at = memoryview(self._kept)

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: Any) -> None:
        tokens = self.columns.block_tokens
        length = max(request.num_tokens, len(request.path) * tokens)
        kept_tokens = max(0, length + self._policy.next_tokens - self._policy.budget_tokens)
        self._kept[request.path[:num_cached]] = np.arange(num_cached) * tokens < kept_tokens

    def entry(self, block: int) -> tuple:
        at = self.columns.scalars
        return (self._kept_at[block], at.tick[block], -at.depth[block], block)

    def explain(self, block: int, now_s: float) -> Reason:
        part = "within the prefix that is kept" if self._kept_at[block] else "within what a request can afford to compute again"
        idle_s = now_s - self.columns.scalars.last_s[block]
        return Reason(f"evicted: {part}, and the longest unused of those ({idle_s:,.0f} s).", {"idle_s": idle_s})
