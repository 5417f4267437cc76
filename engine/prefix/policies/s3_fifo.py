"""S3-FIFO (SOSP 2023) on leaves: a small queue of 10 % for what is new, a main queue, and a ghost list of evicted blocks.

New blocks enter the small queue, or the main one where the ghost list remembers them. From the small queue a leaf touched again
moves to main, any other leaves; from main a leaf with touches left goes round once more with one less (2 bits).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.leaves import LeafHeap
from engine.prefix.policy import NOTHING, POLICIES, EvictionPolicy, Future, Ranker, Reason
from engine.prefix.request import CacheRequest

MOST_TOUCHES = 3


@POLICIES.register("s3_fifo")
@dataclass(frozen=True)
class S3FIFO(EvictionPolicy):
    """Simple, scalable FIFO.

    Args:
        small_share: of the capacity, for the small queue.
        ghost_ratio: evicted blocks remembered for each block of capacity.
    """

    small_share: float = 0.1
    ghost_ratio: float = 1.0
    name: ClassVar[str] = "s3_fifo"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "S3FIFORanker":
        return S3FIFORanker(columns, max(1, int(self.small_share * capacity)))


class S3FIFORanker(Ranker):
    """Two queues in order of entry; `entered` is a block's place in its queue."""

    def __init__(self, columns: BlockColumns, small_capacity: int) -> None:
        self.columns = columns
        self._small_capacity = small_capacity
        self._in_main = np.zeros(columns.num_blocks, np.bool_)
        self._queued = np.zeros(columns.num_blocks, np.bool_)
        self._touches = np.zeros(columns.num_blocks, np.uint8)
        self._entered = np.zeros(columns.num_blocks, np.int64)
        self._is_main_at, self._touches_at, self._entered_at = map(memoryview, (self._in_main, self._touches, self._entered))
        self._small, self._main = LeafHeap(), LeafHeap()
        self._num_small, self._clock = 0, 0

    def on_lookup(self, request: CacheRequest, num_hits: int) -> np.ndarray:
        hits = request.path[:num_hits]
        self._touches[hits] = np.minimum(self._touches[hits] + 1, MOST_TOUCHES)
        return self.columns.ghost[request.path]

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: np.ndarray) -> None:
        span = request.path[:num_cached]
        is_new = ~self._queued[span]
        new = span[is_new]
        self._queued[new] = True
        self._in_main[new] = noted[:num_cached][is_new]
        self._touches[new] = 0
        self._clock += 1
        self._entered[new] = self._clock
        self._num_small += int((~self._in_main[new]).sum())

    def add_leaf(self, block: int) -> None:
        queue = self._main if self._is_main_at[block] else self._small
        queue.push((self._entered_at[block], -self.columns.scalars.depth[block], block))

    def drop_leaf(self, block: int) -> None:
        (self._main if self._is_main_at[block] else self._small).discard(block)

    def victim(self, now_s: float) -> int:
        while True:
            first, main = self._small.first(), self._main.first()
            if first is not None and (self._num_small > self._small_capacity or main is None):
                if not self._touches_at[first[-1]]:
                    return first[-1]
                self._promote(first[-1])
            elif main is None:
                return NOTHING
            elif not self._touches_at[main[-1]]:
                return main[-1]
            else:
                self._go_round(main[-1])

    def evict(self, block: int, now_s: float) -> None:
        self._num_small -= not self._is_main_at[block]
        self._queued[block] = False
        super().evict(block, now_s)

    def candidates(self) -> Iterator[int]:
        yield from self._small
        yield from self._main

    def explain(self, block: int, now_s: float) -> Reason:
        touches = self._touches_at[block]
        part = "main" if self._is_main_at[block] else "small"
        return Reason(f"evicted: first in the {part} queue and not touched since it came there.", {"touches": float(touches)})

    def _promote(self, block: int) -> None:
        self.drop_leaf(block)
        self._is_main_at[block] = True
        self._num_small -= 1
        self._requeue(block, 0)

    def _go_round(self, block: int) -> None:
        self.drop_leaf(block)
        self._requeue(block, self._touches_at[block] - 1)

    def _requeue(self, block: int, touches: int) -> None:
        self._clock += 1
        self._touches_at[block], self._entered_at[block] = touches, self._clock
        self.add_leaf(block)
