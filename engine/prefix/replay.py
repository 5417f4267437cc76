"""Replays a workload against a policy: the loop alone, as fast as it goes; what it means is computed afterwards."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.cache_types import KIND_NAMES, QUEUE_NAMES, CacheSnapshots
from engine.errors import Cancelled
from engine.prefix.policy import EvictionPolicy
from engine.prefix.tree import PrefixTree
from engine.prefix.uses import Uses, future
from engine.prefix.workloads.workload import Workload

NUM_SNAPSHOTS = 120
_REPORT_EVERY = 500


@dataclass(frozen=True, eq=False)
class Replay:
    """What a policy did, request by request and eviction by eviction.

    Args:
        num_hits: int32 [R], prompt blocks found; num_inserted: int32 [R].
        evicted: int32 [E], blocks in the order they left; evicted_at: int32 [E], during which request.
        evicted_hits: int32 [E], hits of the block since it was inserted; evicted_queue: uint8 [E].
        elapsed_s: processor time of the whole loop.
    """

    num_hits: np.ndarray
    num_inserted: np.ndarray
    evicted: np.ndarray
    evicted_at: np.ndarray
    evicted_hits: np.ndarray
    evicted_queue: np.ndarray
    snapshots: CacheSnapshots
    elapsed_s: float


def replay(
    workload: Workload,
    policy: EvictionPolicy,
    capacity: int,
    uses: Uses | None = None,
    progress: Callable[[float], bool] | None = None,
) -> Replay:
    """Returns what a policy does with a workload in a cache of `capacity` blocks. Raises BadRequest, Cancelled.

    Args:
        uses: of the workload's blocks; only a policy that is a limit needs them.
        progress: called with the share done now and then; the replay stops where it returns False.
    """
    columns = workload.columns()
    coming = future(workload, uses) if policy.needs_future and uses is not None else None
    tree = PrefixTree(columns, capacity, policy, future=coming)
    begun = time.process_time()
    num_hits = np.zeros(workload.num_requests, np.int32)
    num_inserted = np.zeros(workload.num_requests, np.int32)
    evicted: list[int] = []
    counts, hits, queues = [], [], []
    camera = _Camera(tree, workload.num_requests)
    hits_at, queue_at = columns.scalars.hits, columns.scalars.queue
    for request in workload.requests():
        lease = tree.begin(request)
        found = lease.num_cached
        admission = tree.extend(lease)
        tree.end(lease)
        i = request.index
        num_hits[i], num_inserted[i] = lease.num_hits, admission.num_cached - found
        left = admission.evicted
        counts.append(len(left))
        evicted += left
        hits += [hits_at[block] for block in left]
        queues += [queue_at[block] for block in left]
        camera.look(i)
        if progress is not None and i % _REPORT_EVERY == 0 and not progress(i / workload.num_requests):
            raise Cancelled("Stopped.")
    elapsed_s = time.process_time() - begun
    return Replay(
        num_hits=num_hits,
        num_inserted=num_inserted,
        evicted=np.array(evicted, np.int32),
        evicted_at=np.repeat(np.arange(workload.num_requests, dtype=np.int32), counts),
        evicted_hits=np.array(hits, np.int32),
        evicted_queue=np.array(queues, np.uint8),
        snapshots=camera.snapshots(),
        elapsed_s=elapsed_s,
    )


class _Camera:
    """Takes a snapshot of the tree at moments spread evenly over the requests, the last one included."""

    def __init__(self, tree: PrefixTree, num_requests: int) -> None:
        self._tree = tree
        self._moments = set(np.unique(np.linspace(0, num_requests - 1, min(NUM_SNAPSHOTS, num_requests)).round().astype(int)).tolist())
        self._request: list[int] = []
        self._queues: list[np.ndarray] = []
        self._kinds: list[np.ndarray] = []
        self._weights: list[list[float]] = []
        self._names = tuple(tree.ranker.weights())

    def look(self, request: int) -> None:
        if request not in self._moments:
            return
        columns = self._tree.columns
        self._request.append(request)
        self._queues.append(np.bincount(columns.queue[columns.cached], minlength=len(QUEUE_NAMES)))
        self._kinds.append(np.bincount(columns.kind[columns.cached], minlength=len(KIND_NAMES)))
        learned = self._tree.ranker.weights()
        self._weights.append([learned[name] for name in self._names])

    def snapshots(self) -> CacheSnapshots:
        return CacheSnapshots(
            request=np.array(self._request, np.int32),
            queues=np.array(self._queues, np.int32),
            kinds=np.array(self._kinds, np.int32),
            weight_names=self._names,
            weights=np.array(self._weights, np.float32).reshape(len(self._request), len(self._names)),
        )
