"""A mirror of a server's radix tree, block by block, in which a policy of the built-in engine ranks. Knows nothing of SGLang.

A block is a page of the server's pool. The server decides when room is needed and what is locked; the mirror says which pages
leave, by the same tree, columns and ranker that replays and the built-in engine use.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.names import BlockNames
from engine.prefix.policy import NOTHING, EvictionPolicy
from engine.prefix.request import CacheRequest
from engine.prefix.tree import Lease, PrefixTree


class MirrorTree(PrefixTree):
    """A prefix tree out of which somebody else takes blocks."""

    def choose(self, count: int, now_s: float, may_leave: Callable[[int], bool]) -> list[int]:
        """Takes up to `count` blocks out, each the policy's victim of the moment, and returns them in order.

        Args:
            may_leave: whether the server would let go of a candidate; the others stay candidates.
        """
        left: list[int] = []
        kept: list[int] = []
        while len(left) < count and (victim := self.ranker.victim(now_s)) != NOTHING:
            if may_leave(victim):
                self._evict(victim, now_s)
                left.append(victim)
            else:
                self.ranker.drop_leaf(victim)
                kept.append(victim)
        for block in kept:
            self.ranker.add_leaf(block)
        if left:
            self.ranker.on_evicted(left, now_s)
        return left

    def remove(self, blocks: Sequence[int], now_s: float) -> None:
        """Takes out blocks that the server let go of by itself, the deepest first."""
        gone: list[int] = []
        for block in blocks:
            if not self.columns.leaf[block]:
                break
            self._evict(block, now_s)
            gone.append(block)
        if gone:
            self.ranker.on_evicted(gone, now_s)


class Mirror:
    """The pages of one server under one policy.

    Args:
        capacity: pages of the server's pool.
        block_tokens: tokens a page.
        max_prompt: tokens of the longest prompt with its answer.
    """

    def __init__(self, policy: EvictionPolicy, capacity: int, block_tokens: int, max_prompt: int) -> None:
        self.policy, self.capacity, self.block_tokens = policy, capacity, block_tokens
        self._num_rows = capacity + int(policy.ghost_ratio * capacity) + 2 * -(-max_prompt // block_tokens) + 1
        self.reset()

    def reset(self) -> None:
        """Forgets all blocks and all that was learned, as after a flush of the server's cache."""
        self.columns = BlockColumns.empty(self._num_rows, self.block_tokens)
        self.tree = MirrorTree(self.columns, self.capacity, self.policy)
        self._names = BlockNames(self.columns)
        self.num_requests = 0

    def path(self, keys: Sequence[Hashable], kinds: Sequence[int]) -> np.ndarray:
        """Returns the rows int32 [n] of blocks that follow one another from a prompt's start. Raises BadRequest."""
        return self._names.path(keys, kinds)

    def begin(self, request: CacheRequest) -> Lease:
        """Looks a request up and holds what it found until `end`."""
        self.num_requests += 1
        return self.tree.begin(request)

    def insert(self, lease: Lease, path: np.ndarray) -> list[int]:
        """Caches the blocks of a request's path that the server keeps now: its prompt's, later its answer's as well.

        Returns blocks that left for them: none, unless the server dropped pages without telling.
        """
        lease.request = lease.request._replace(path=path)
        return self.tree.extend(lease).evicted

    def end(self, lease: Lease) -> None:
        """Lets go of a request's blocks."""
        self.tree.end(lease)

    def ancestor(self, block: int, steps: int) -> int:
        """Returns the block that stands `steps` before one on its path, -1 before the first."""
        parent = self.columns.scalars.parent
        while steps and block >= 0:
            block, steps = parent[block], steps - 1
        return block
