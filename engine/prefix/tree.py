"""The prefix tree: structure, references, capacity, pins and time to live of cached blocks.

Knows nothing of policies but their ranker's interface, and nothing of what a block holds. A request takes three steps:
`begin` finds and holds the longest cached prefix, `extend` makes room and inserts the rest, `end` lets go. Who gives up half
way calls `end` at once. All of it runs on the caller's thread.
"""

import heapq
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import BlockColumns, num_leading
from engine.prefix.ghosts import GhostList
from engine.prefix.leaves import LeafHeap
from engine.prefix.policy import NOTHING, EvictionPolicy, Future
from engine.prefix.request import CacheRequest


class Lease:
    """A request's hold on its blocks: the first `num_cached` of its path stay until `end`; `num_hits` of them were found.

    `expired` lists the blocks that left before the look-up because their time was over.
    """

    __slots__ = ("expired", "is_open", "noted", "num_cached", "num_hits", "request")

    def __init__(self, request: CacheRequest, num_found: int, expired: list[int]) -> None:
        self.request, self.expired = request, expired
        self.num_hits = min(num_found, request.num_prompt)
        self.num_cached = num_found
        self.noted: Any = None
        self.is_open = True


class Admission(NamedTuple):
    """What `extend` did: how many blocks of the path are cached now, the blocks that left for them, in order, and how many of the path
    were there before; from then on they are new."""

    num_cached: int
    evicted: list[int]
    num_found: int


class PrefixTree:
    """A prefix cache of `capacity` blocks under a policy.

    Args:
        columns: of all blocks that requests may name; the tree owns their state.
        ttl_s: blocks that nobody touched for so long leave at the next request, None for never.
        future: requests to come, for a policy that needs them.
    """

    def __init__(
        self, columns: BlockColumns, capacity: int, policy: EvictionPolicy, ttl_s: float | None = None, future: Future | None = None
    ) -> None:
        if capacity < 1:
            raise BadRequest(f"The cache's capacity is {capacity} blocks; it must hold at least one.")
        assert (future is not None) or not policy.needs_future, "a limit needs the requests to come"
        self.columns, self.capacity, self.ttl_s = columns, capacity, ttl_s
        self.ranker = policy.ranker(columns, capacity, future)
        self.ghosts = GhostList(columns, int(policy.ghost_ratio * capacity))
        self.size = self.num_inserted = self.num_evicted = 0
        self._tick, self._num_pinned = 0, 0
        self._by_age = LeafHeap()
        self._pins: list[tuple[float, int, np.ndarray]] = []
        self._pin_numbers = itertools.count()

    def begin(self, request: CacheRequest) -> Lease:
        """Returns a hold on the longest cached prefix of a request's path; expired pins and blocks are dropped first."""
        if self._pins:
            self._expire_pins(request.time_s)
        expired = [] if self.ttl_s is None else self._expire(request.time_s - self.ttl_s, request.time_s)
        columns, path = self.columns, request.path
        self._tick += 1
        found = num_leading(columns.cached[path])
        lease = Lease(request, found, expired)
        if found:
            columns.num_refs[path[:found]] += 1
            self._refresh(int(path[found - 1]))
        lease.noted = self.ranker.on_lookup(request, lease.num_hits)
        columns.hits[path[: lease.num_hits]] += 1
        return lease

    def extend(self, lease: Lease, num_blocks: int | None = None) -> Admission:
        """Inserts the path's blocks up to `num_blocks` (all without it), evicting for them, and touches the path.

        A path longer than the room that can be made is cached as far as it goes.
        """
        assert lease.is_open
        request, held = lease.request, self._hold_more(lease)
        stop = len(request.path) if num_blocks is None else num_blocks
        evicted: list[int] = []
        wanted, room = max(stop - held, 0), self.capacity - self.size
        if wanted > room:
            wanted = room + self._make_room(request, held + room, wanted - room, evicted)
            if evicted:
                self.ranker.on_evicted(evicted, request.time_s)
        if wanted:
            self._insert(lease, held, held + wanted)
        self._touch(lease)
        self.ranker.on_touch(request, lease.num_hits, lease.num_cached, lease.noted)
        return Admission(lease.num_cached, evicted, held)

    def end(self, lease: Lease) -> None:
        """Lets go of a request's blocks; the last one may become a candidate. Safe to call twice."""
        if not lease.is_open:
            return
        lease.is_open = False
        if lease.num_cached:
            path = lease.request.path
            self.columns.num_refs[path[: lease.num_cached]] -= 1
            self._refresh(int(path[lease.num_cached - 1]))

    def pin(self, path: np.ndarray, until_s: float = math.inf) -> None:
        """Keeps a path's blocks, cached now or later, until a time. Raises BadRequest where more would be pinned than fit."""
        columns = self.columns
        fresh = int((columns.num_pins[path] == 0).sum())
        if self._num_pinned + fresh > self.capacity:
            raise BadRequest(
                f"Pinning these blocks would keep {self._num_pinned + fresh:,} in a cache of {self.capacity:,}; pin a shorter prefix."
            )
        self._num_pinned += fresh
        columns.num_pins[path] += 1
        heapq.heappush(self._pins, (until_s, next(self._pin_numbers), path))
        for block in path.tolist():
            self._refresh(block)

    def unpin(self, path: np.ndarray) -> None:
        """Takes one pin off a path's blocks. Raises BadRequest where it is not pinned."""
        for i, (_, _, pinned) in enumerate(self._pins):
            if np.array_equal(pinned, path):
                del self._pins[i]
                heapq.heapify(self._pins)
                self._release_pin(path)
                return
        raise BadRequest("This prefix is not pinned; nothing to let go.")

    def check_integrity(self) -> None:
        """Asserts everything that must hold between two steps; O(number of blocks)."""
        c = self.columns
        held = np.flatnonzero(c.cached)
        parents = c.parent[held]
        inner = parents[parents >= 0]
        assert self.size == len(held) <= self.capacity, (self.size, len(held), self.capacity)
        assert self.num_inserted - self.num_evicted == self.size
        assert c.cached[inner].all(), "the cached set is not prefix-closed"
        assert np.array_equal(c.num_children, np.bincount(inner, minlength=c.num_blocks)), "children are miscounted"
        free = c.cached & (c.num_children == 0) & (c.num_refs == 0) & (c.num_pins == 0)
        assert np.array_equal(c.leaf, free), "candidates are mismarked"
        assert np.array_equal(np.sort(np.fromiter(self.ranker.candidates(), np.int64)), np.flatnonzero(free)), "the ranker lost a leaf"
        assert not (c.ghost & c.cached).any() and len(self.ghosts) == c.ghost.sum() <= self.ghosts.capacity
        assert (c.num_refs >= 0).all() and (c.num_pins >= 0).all() and (c.num_pins > 0).sum() == self._num_pinned
        assert not (c.num_refs > 0)[~c.cached].any(), "a block that is not cached is held"

    def _hold_more(self, lease: Lease) -> int:
        """Takes hold of blocks that others inserted since the look-up; returns how many of the path are held."""
        path, held = lease.request.path, lease.num_cached
        found = held + num_leading(self.columns.cached[path[held:]])
        if found > held:
            self.columns.num_refs[path[held:found]] += 1
            self._refresh(int(path[found - 1]))
            lease.num_cached = found
        return found

    def _make_room(self, request: CacheRequest, first: int, count: int, evicted: list[int]) -> int:
        """Evicts up to `count` blocks for those of the path from `first` on; returns how many found a place."""
        ranker, now_s = self.ranker, request.time_s
        for i in range(count):
            victim = ranker.victim(now_s)
            if victim == NOTHING or (ranker.selective and not ranker.prefers(int(request.path[first + i]), victim)):
                return i
            self._evict(victim, now_s)
            evicted.append(victim)
        return count

    def _evict(self, block: int, now_s: float) -> None:
        at = self.columns.scalars
        assert at.leaf[block], f"block {block} must not leave"
        at.leaf[block] = at.cached[block] = False
        self.size -= 1
        self.num_evicted += 1
        self.ranker.evict(block, now_s)
        if self.ttl_s is not None:
            self._by_age.discard(block)
        forgotten = self.ghosts.add(block)
        if forgotten is not None:
            self.ranker.on_forget(forgotten, now_s)
        parent = at.parent[block]
        if parent >= 0:
            at.num_children[parent] -= 1
            if not at.num_children[parent]:
                self._refresh(parent)

    def _insert(self, lease: Lease, start: int, stop: int) -> None:
        """Caches path[start:stop] behind a prefix that is cached and held already."""
        c, request = self.columns, lease.request
        new = request.path[start:stop]
        remembered = self.ghosts.leave(new)
        c.cached[new] = True
        c.num_refs[new] = 1
        c.num_children[request.path[max(start - 1, 0) : stop - 1]] += 1
        c.hits[new], c.born[new] = 0, self._tick
        fresh = new[~remembered]
        c.num_sessions[fresh], c.owner[fresh] = 0, -1
        self.size += stop - start
        self.num_inserted += stop - start
        lease.num_cached = stop

    def _touch(self, lease: Lease) -> None:
        c, request = self.columns, lease.request
        span = request.path[: lease.num_cached]
        c.last_s[span], c.tick[span] = request.time_s, self._tick
        c.num_sessions[span] += c.owner[span] != request.session
        c.owner[span] = request.session

    def _refresh(self, block: int) -> None:
        """Tells the ranker where a block has become, or is no longer, a candidate."""
        at = self.columns.scalars
        free = at.cached[block] and not (at.num_children[block] or at.num_refs[block] or at.num_pins[block])
        if free == at.leaf[block]:
            return
        at.leaf[block] = free
        if free:
            self.ranker.add_leaf(block)
            if self.ttl_s is not None:
                self._by_age.push((at.tick[block], -at.depth[block], block))
        else:
            self.ranker.drop_leaf(block)
            self._by_age.discard(block)

    def _expire(self, limit_s: float, now_s: float) -> list[int]:
        expired = []
        while (first := self._by_age.first()) is not None and self.columns.scalars.last_s[first[-1]] < limit_s:
            expired.append(first[-1])
            self._evict(first[-1], now_s)
        if expired:
            self.ranker.on_evicted(expired, now_s)
        return expired

    def _expire_pins(self, now_s: float) -> None:
        while self._pins and self._pins[0][0] <= now_s:
            self._release_pin(heapq.heappop(self._pins)[2])

    def _release_pin(self, path: np.ndarray) -> None:
        self.columns.num_pins[path] -= 1
        self._num_pinned -= int((self.columns.num_pins[path] == 0).sum())
        for block in path.tolist():
            self._refresh(block)
