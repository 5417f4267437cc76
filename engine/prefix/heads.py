"""Leaves by class, in order of last use within each: the best victim is found by comparing the ends of the classes.

Exact where the score of a class falls (or rises to one peak and falls) with idle time: then its least is at the oldest end,
or at one of both. Finding a victim costs one score a non-empty class and request, and two an eviction after that.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence

from engine.prefix.blocks import BlockColumns
from engine.prefix.leaves import LeafHeap
from engine.prefix.policy import NOTHING, Ranker

Score = Callable[[int, int, float], float]


class ClassHeads:
    """All candidates of a policy that scores classes.

    Args:
        score: of (class, block, now_s); smaller leaves first, ties to the longest unused, then the deepest.
        two_ends: whether the newest leaf of a class is compared as well as the oldest.
    """

    def __init__(self, columns: BlockColumns, score: Score, two_ends: bool = False) -> None:
        self._tick, self._depth = columns.scalars.tick, columns.scalars.depth
        self._score = score
        self._two_ends = two_ends
        self._oldest: dict[int, LeafHeap] = {}
        self._newest: dict[int, LeafHeap] = {}
        self._class_of: dict[int, int] = {}
        self._heads: list[tuple] | None = None
        self._scored: set[int] = set()
        self._now_s = 0.0
        self._left: tuple[int, int] = (NOTHING, NOTHING)
        self._heir = NOTHING

    def __iter__(self) -> Iterator[int]:
        return iter(self._class_of)

    def class_of(self, block: int) -> int:
        """Returns the class a candidate stands in."""
        return self._class_of[block]

    def add(self, block: int, number: int) -> None:
        """Takes a leaf in."""
        self._class_of[block] = number
        if self._left == (number, self._tick[block]):
            # The parent of the victim that just left: as long unused and in the same class, so that it has the same
            # score, and no other leaf has its tick. It leaves next, and need not be sorted in.
            self._heir = block
            return
        self._sort_in(block, number)

    def _settle(self) -> None:
        """Sorts the heir in like any other leaf."""
        if self._heir != NOTHING:
            heir, self._heir = self._heir, NOTHING
            self._sort_in(heir, self._class_of[heir])

    def _sort_in(self, block: int, number: int) -> None:
        tick, depth = self._tick[block], -self._depth[block]
        heap = self._oldest.get(number)
        if heap is None:
            heap = self._oldest[number] = LeafHeap()
            if self._two_ends:
                self._newest[number] = LeafHeap()
        heap.push((tick, depth, block))
        is_end = heap.first()[-1] == block
        if self._two_ends:
            newest = self._newest[number]
            newest.push((-tick, depth, block))
            is_end = is_end or newest.first()[-1] == block
        if is_end and self._heads is not None:
            self._push(number, block)

    def drop(self, block: int) -> None:
        """Takes a leaf out."""
        number = self._class_of.pop(block)
        if block == self._heir:
            self._heir = NOTHING
            return
        self._oldest[number].discard(block)
        if self._two_ends:
            self._newest[number].discard(block)

    def leave(self, block: int) -> None:
        """Takes out a leaf that leaves the cache; its parent may follow as its heir."""
        if self._heir != block:
            self._settle()
        self._left = (self._class_of[block], self._tick[block])
        self.drop(block)

    def restart(self) -> None:
        """Forgets the scores that were compared: time or what was learned has changed, or room has been made."""
        self._heads, self._left = None, (NOTHING, NOTHING)
        self._settle()

    def best(self, now_s: float) -> int:
        """Returns the candidate of the smallest score, NOTHING where there is none; scores are kept until `restart`."""
        if now_s != self._now_s:
            self.restart()
        if self._heir != NOTHING:
            return self._heir
        if self._heads is None:
            self._compare_all(now_s)
        heads = self._heads
        while heads:
            _, _, _, block, number = heads[0]
            if self._class_of.get(block) == number and self._is_end(number, block):
                return block
            heapq.heappop(heads)
            self._scored.discard(block)
            if number in self._oldest:
                self._push_ends(number)
        return NOTHING

    def ends(self) -> list[tuple[int, int]]:
        """Returns (class, block) of every end of a class."""
        found = []
        for number, heap in self._oldest.items():
            ends = {first[-1] for first in (heap.first(), self._newest[number].first() if self._two_ends else None) if first is not None}
            found += [(number, block) for block in ends]
        return found

    def _compare_all(self, now_s: float) -> None:
        self._now_s, self._heads = now_s, []
        self._scored.clear()
        for number in [number for number, heap in self._oldest.items() if not len(heap)]:
            del self._oldest[number]
            self._newest.pop(number, None)
        score, heads, scored = self._score, self._heads, self._scored
        for ends in (self._oldest, self._newest) if self._two_ends else (self._oldest,):
            for number, heap in ends.items():
                tick, depth, block = heap.first()
                if block not in scored:
                    scored.add(block)
                    heads.append((score(number, block, now_s), abs(tick), depth, block, number))
        heapq.heapify(heads)

    def _push_ends(self, number: int) -> None:
        first = self._oldest[number].first()
        if first is None:
            return
        self._push(number, first[-1])
        if self._two_ends:
            last = self._newest[number].first()[-1]
            if last != first[-1]:
                self._push(number, last)

    def _push(self, number: int, block: int) -> None:
        if block in self._scored:
            return
        self._scored.add(block)
        score = self._score(number, block, self._now_s)
        heapq.heappush(self._heads, (score, self._tick[block], -self._depth[block], block, number))

    def _is_end(self, number: int, block: int) -> bool:
        # Compared with the score at this moment, a leaf that is no longer an end is no better than the ends are.
        return self._oldest[number].first()[-1] == block or (self._two_ends and self._newest[number].first()[-1] == block)


class ClassRanker(Ranker):
    """A ranker whose candidates stand in classes; `class_at` holds the class of every block, by number."""

    heads: ClassHeads
    class_at: Sequence[int]

    def add_leaf(self, block: int) -> None:
        self.heads.add(block, self.class_at[block])

    def drop_leaf(self, block: int) -> None:
        self.heads.drop(block)

    def victim(self, now_s: float) -> int:
        return self.heads.best(now_s)

    def candidates(self) -> Iterator[int]:
        return iter(self.heads)

    def evict(self, block: int, now_s: float) -> None:
        self.heads.leave(block)
