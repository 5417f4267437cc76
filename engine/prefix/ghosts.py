"""The blocks that were evicted a while ago: a bounded first-in first-out list without their data."""

from collections import OrderedDict

import numpy as np

from engine.prefix.blocks import BlockColumns


class GhostList:
    """Remembers the last `capacity` evicted blocks; the column `ghost` says which."""

    def __init__(self, columns: BlockColumns, capacity: int) -> None:
        self.capacity = capacity
        self._columns = columns
        self._flags = columns.scalars.ghost
        self._order: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._order)

    def add(self, block: int) -> int | None:
        """Takes an evicted block in; returns the one forgotten for it, None where there was room."""
        if not self.capacity:
            return block
        self._order[block] = None
        self._flags[block] = True
        if len(self._order) <= self.capacity:
            return None
        oldest, _ = self._order.popitem(last=False)
        self._flags[oldest] = False
        return oldest

    def leave(self, blocks: np.ndarray) -> np.ndarray:
        """Takes blocks that are cached again out; returns bool, which of them were remembered. Unknown ones are passed over."""
        known = self._columns.ghost[blocks]
        if known.any():
            for block in blocks[known].tolist():
                del self._order[block]
            self._columns.ghost[blocks] = False
        return known
