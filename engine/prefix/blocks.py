"""What the cache knows of every block, one column a property; a block is a row number.

Rows are given out by whoever names the blocks (a workload, or `BlockNames` where requests arrive live); two
requests share a row exactly where they share a prefix. Times are seconds, offsets are blocks from the prompt's start.
"""

from enum import IntEnum
from types import SimpleNamespace

import numpy as np

from engine.errors import BadRequest

NO_PARENT = -1


class TokenType(IntEnum):
    """What the tokens of a block are (2605.18825, table 1); of a mixed block the majority's, ties to the earlier one."""

    SYSTEM = 0
    USER = 1
    TOOL_OUTPUT = 2
    RESPONSE = 3
    COT = 4


class Queue(IntEnum):
    """The four queues of 2605.18825; a policy that routes nothing leaves every block in the first."""

    EVICT_FIRST = 0
    STRUCTURAL = 1
    CHAT = 2
    AGENT = 3


_DTYPES = {
    "parent": np.int32,
    "depth": np.int32,
    "kind": np.uint8,
    "queue": np.uint8,
    "cached": np.bool_,
    "leaf": np.bool_,
    "ghost": np.bool_,
    "num_children": np.int32,
    "num_refs": np.int32,
    "num_pins": np.int32,
    "last_s": np.float64,
    "tick": np.int64,
    "born": np.int64,
    "hits": np.int32,
    "owner": np.int32,
    "num_sessions": np.int32,
}


class BlockColumns:
    """Columns [num_blocks] that the tree writes and policies read.

    Args:
        parent: int32 [num_blocks], -1 for the first block of a prompt.
        depth: int32 [num_blocks], offset from the prompt's start in blocks.
        kind: uint8 [num_blocks], a TokenType each.
        block_tokens: tokens a block.

    Further columns: `queue` (a policy's), `cached`, `leaf` (cached, childless, unreferenced, unpinned: may be evicted),
    `ghost` (evicted and still remembered), `num_children` (cached ones), `num_refs`, `num_pins`, `last_s` and `tick` of the
    last request that touched it (ticks count requests), `born` (tick of insertion), `hits` since insertion, `owner` (last
    session that touched it), `num_sessions` that touched it in turn.

    `shadows` are further columns of the same rows, of directories a ranker keeps beside the cache; a row in use there is in use.
    `scalars` holds a memoryview of each column: one element of it is read in half the time of an array's.
    """

    def __init__(self, parent: np.ndarray, depth: np.ndarray, kind: np.ndarray, block_tokens: int = 16) -> None:
        num, self.block_tokens = len(parent), block_tokens
        assert len(depth) == len(kind) == num
        for name, dtype in _DTYPES.items():
            setattr(self, name, np.zeros(num, dtype))
        self.parent[:], self.depth[:], self.kind[:] = parent, depth, kind
        self.owner[:] = -1
        self.shadows: list[BlockColumns] = []
        self.scalars = SimpleNamespace(**{name: memoryview(getattr(self, name)) for name in _DTYPES})

    @classmethod
    def empty(cls, num_blocks: int, block_tokens: int = 16) -> "BlockColumns":
        """Returns columns for blocks that are named later."""
        zeros = np.zeros(num_blocks, np.int32)
        return cls(zeros - 1, zeros, zeros, block_tokens)

    def in_use(self) -> np.ndarray:
        """Returns bool [num_blocks], rows that are cached, remembered, held or pinned, here or in a shadow."""
        used = self.cached | self.ghost | (self.num_refs > 0) | (self.num_pins > 0)
        for shadow in self.shadows:
            used |= shadow.in_use()
        return used

    @property
    def num_blocks(self) -> int:
        """Returns the number of rows."""
        return len(self.parent)


def capacity_in_blocks(capacity: float, num_distinct: int) -> int:
    """Returns a capacity in blocks: a share of the distinct blocks below 1, a number of blocks from 1 on. Raises BadRequest."""
    if not (isinstance(capacity, int | float) and np.isfinite(capacity) and capacity > 0):
        raise BadRequest(f"The capacity is {capacity!r}; give a share of the distinct blocks below 1, or a number of blocks.")
    if not num_distinct:
        raise BadRequest("The workload has no prompt that fills a block; choose one with longer prompts.")
    blocks = int(capacity) if capacity >= 1 else round(capacity * num_distinct)
    if blocks < 1:
        raise BadRequest(f"The capacity {capacity} of {num_distinct:,} distinct blocks is less than one block; choose a larger share.")
    return blocks


def num_leading(flags: np.ndarray) -> int:
    """Returns how many of bool [n] are set before the first that is not."""
    if not len(flags):
        return 0
    first = int(flags.argmin())
    return len(flags) if flags[first] else first
