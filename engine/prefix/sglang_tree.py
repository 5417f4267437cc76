"""Replays a workload through SGLang's own radix tree: an independent implementation to hold ours against.

`RadixCache` of sglang 0.5.2 with its paged allocator does the matching, locking, evicting and allocating; one node holds one page, as
our tree evicts block by block, where SGLang serving whole prompts evicts a prompt's whole unshared tail at once (`whole_tails`). Under
its own LRU it is a rival without a line of ours in it. Under one of our policies SGLang's tree holds what is cached and our ranker,
told of every step, names the page that leaves: how a policy of ours would run inside it. sglang is imported when it is needed.
"""

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.cache_types import KIND_NAMES, QUEUE_NAMES, CacheSnapshots
from engine.errors import BackendUnavailable, BadRequest, Cancelled
from engine.prefix.policies import POLICIES
from engine.prefix.policy import EvictionPolicy
from engine.prefix.replay import Replay
from engine.prefix.request import CacheRequest
from engine.prefix.tree import PrefixTree
from engine.prefix.workloads.workload import Workload

OWN_LRU, PREFIX, REPORT_EVERY = "sglang_lru", "sglang_", 100


def is_installed() -> bool:
    """Whether sglang is there to be asked."""
    return importlib.util.find_spec("sglang") is not None


@dataclass(frozen=True)
class InSGLang:
    """SGLang's tree under its own LRU, or under one of our policies.

    Args:
        policy: of ours; None for SGLang's own.
        whole_tails: insert what is new of a prompt as one node, which then leaves as one; only under SGLang's own LRU.
    """

    policy: EvictionPolicy | None = None
    whole_tails: bool = False

    def __post_init__(self) -> None:
        if self.policy is not None and (self.whole_tails or self.policy.needs_future):
            raise BadRequest(f"SGLang's tree cannot run under {self.policy.name!r} so; choose a policy that evicts block by block online.")

    @classmethod
    def named(cls, name: str) -> "InSGLang":
        """Returns `sglang_lru`, or `sglang_` and one of our policies. Raises UnknownName, BadRequest."""
        return cls() if name == OWN_LRU else cls(POLICIES.create(name.removeprefix(PREFIX)))

    @property
    def name(self) -> str:
        """Returns what it is called in results."""
        return OWN_LRU if self.policy is None else PREFIX + self.policy.name

    def params(self) -> dict[str, bool | float | int | str]:
        """Returns the configuration, field by field."""
        return {"whole_tails": self.whole_tails} if self.policy is None else self.policy.params()

    def replay(self, workload: Workload, capacity: int, progress: Callable[[float], bool] | None = None) -> Replay:
        """Returns what SGLang's tree does with a workload in a pool of `capacity` pages. Raises BackendUnavailable, Cancelled."""
        if not is_installed():
            raise BackendUnavailable("sglang is not installed here; it comes with requirements.txt on Linux.")
        log = _Log(workload)
        run = _OwnLRU(log, capacity, self.whole_tails) if self.policy is None else _Ranked(log, capacity, self.policy)
        begun = time.process_time()
        for request in workload.requests():
            run.serve(request)
            if progress is not None and request.index % REPORT_EVERY == 0 and not progress(request.index / workload.num_requests):
                raise Cancelled("Stopped.")
        return log.replay(time.process_time() - begun)


class _Log:
    """What happens, in the form that a replay has."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.num_hits = np.zeros(workload.num_requests, np.int32)
        self.num_inserted = np.zeros(workload.num_requests, np.int32)
        self.hits = np.zeros(workload.num_blocks, np.int32)
        self.queue = np.zeros(workload.num_blocks, np.uint8)
        self._evicted: list[tuple[int, int, int, int]] = []
        self._at = 0

    def serve(self, request: CacheRequest, num_found: int, num_inserted: int) -> None:
        """Takes in a request's look-up; evictions that follow are its own."""
        self._at, hits = request.index, min(num_found, request.num_prompt)
        self.num_hits[self._at], self.num_inserted[self._at] = hits, num_inserted
        self.hits[request.path[:hits]] += 1

    def evict(self, block: int) -> None:
        """Takes in a block that leaves."""
        self._evicted.append((block, self._at, int(self.hits[block]), int(self.queue[block])))
        self.hits[block] = 0

    def replay(self, elapsed_s: float) -> Replay:
        """Returns all of it; SGLang's tree has no queues to take pictures of."""
        block, at, hits, queue = (np.array([row[i] for row in self._evicted], np.int32) for i in range(4))
        none = np.zeros(0, np.int32)
        empty = CacheSnapshots(none, none.reshape(0, len(QUEUE_NAMES)), none.reshape(0, len(KIND_NAMES)), (), np.zeros((0, 0), np.float32))
        return Replay(self.num_hits, self.num_inserted, block, at, hits, queue.astype(np.uint8), empty, elapsed_s)


class _OwnLRU:
    """SGLang's tree and allocator as they are."""

    def __init__(self, log: _Log, capacity: int, whole_tails: bool = False) -> None:
        import torch
        from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator

        self.log, self.page, self._whole_tails = log, log.workload.block_size, whole_tails
        self._tokens = np.arange(self.page)
        # Slots alone: what they hold has no part in what is found, and no model runs here.
        self.pool = PagedTokenToKVPoolAllocator(capacity * self.page, self.page, torch.float32, "cpu", None, False)
        self.tree = self._make_tree()

    def _make_tree(self) -> Any:
        from sglang.srt.mem_cache.radix_cache import RadixCache

        log, page = self.log, self.page

        class Logged(RadixCache):
            """Tells which pages leave."""

            def _delete_leaf(self, node: Any) -> None:
                super()._delete_leaf(node)
                for token in reversed(node.key[::page]):
                    log.evict(token // page)

        return Logged(None, self.pool, page_size=page)

    def serve(self, request: CacheRequest) -> None:
        """Matches, locks, makes room, inserts and lets go, as SGLang's scheduler does with a request."""
        key = self._key(request.path)
        match = self.tree.match_prefix(key)
        found = len(match.device_indices) // self.page
        self.tree.inc_lock_ref(match.last_device_node)
        self.log.serve(request, found, 0)
        missing = len(request.path) - found
        short = missing * self.page - self.pool.available_size()
        if short > 0:
            self.tree.evict(short)
        num = min(missing, self.pool.available_size() // self.page)
        self._insert(match.last_device_node, key[found * self.page : (found + num) * self.page])
        self.log.num_inserted[request.index] = num
        self.tree.dec_lock_ref(match.last_device_node)

    def _key(self, path: np.ndarray) -> list[int]:
        """Returns token ids of a path: pages of their own for every block, since a block is a prefix."""
        return (path.astype(np.int64)[:, None] * self.page + self._tokens).ravel().tolist()

    def _insert(self, node: Any, key: list[int]) -> None:
        """Inserts pages behind a node, whose children they are not yet."""
        if not key:
            return
        slots = self.pool.alloc(len(key))
        step = len(key) if self._whole_tails else self.page
        for i in range(0, len(key), step):
            page = key[i : i + step]
            self.tree._insert_helper(node, page, slots[i : i + step])
            node = node.children[tuple(page[: self.page])]
            self._made(node)

    def _made(self, node: Any) -> None:
        return None


class _Ranked(_OwnLRU):
    """SGLang's tree, one of our rankers naming who leaves. Ours keeps the ranker's books; each step asserts that both agree."""

    def __init__(self, log: _Log, capacity: int, policy: EvictionPolicy) -> None:
        super().__init__(log, capacity)
        self._books = PrefixTree(log.workload.columns(), capacity, policy)
        self._node: dict[int, Any] = {}

    def serve(self, request: CacheRequest) -> None:
        match = self.tree.match_prefix(key := self._key(request.path))
        found = len(match.device_indices) // self.page
        self.tree.inc_lock_ref(match.last_device_node)
        lease = self._books.begin(request)
        assert lease.num_cached == found, "SGLang's tree and the ranker's books hold the same"
        admission = self._books.extend(lease)
        self.log.serve(request, found, admission.num_cached - found)
        for block in admission.evicted:
            self.log.queue[block] = self._books.columns.queue[block]
            self._evict(self._node.pop(block))
        self._insert(match.last_device_node, key[found * self.page : admission.num_cached * self.page])
        self.tree.dec_lock_ref(match.last_device_node)
        self._books.end(lease)

    def _made(self, node: Any) -> None:
        self._node[node.key[0] // self.page] = node

    def _evict(self, node: Any) -> None:
        """Takes a leaf out by the steps that SGLang's `evict` takes."""
        assert not node.children and node.lock_ref == 0, "only unlocked leaves leave"
        self.pool.free(node.value)
        self.tree._delete_leaf(node)
