"""Leaves in order of a key that stays the same while a block remains a leaf: a heap that forgets lazily."""

import heapq
from collections.abc import Iterator

_SLACK = 64


class LeafHeap:
    """The blocks that may leave, smallest key first; every operation costs O(log n), finding the first O(1) amortised."""

    __slots__ = ("_heap", "_live")

    def __init__(self) -> None:
        self._heap: list[tuple] = []
        self._live: dict[int, tuple] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[int]:
        return iter(self._live)

    def push(self, entry: tuple) -> None:
        """Adds the leaf that is an entry's last item; what stands before it is its key."""
        self._live[entry[-1]] = entry
        heapq.heappush(self._heap, entry)

    def discard(self, block: int) -> None:
        """Takes a block out; its entry is dropped when it comes up, or when stale ones prevail."""
        live = self._live
        live.pop(block, None)
        if len(self._heap) > 2 * len(live) + _SLACK:
            self._heap = list(live.values())
            heapq.heapify(self._heap)

    def first(self) -> tuple | None:
        """Returns the entry of the smallest key, None where there is no leaf. Takes nothing out."""
        heap, live = self._heap, self._live
        while heap:
            entry = heap[0]
            if live.get(entry[-1]) is entry:
                return entry
            heapq.heappop(heap)
        return None
