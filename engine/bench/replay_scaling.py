"""What an eviction costs as the cache grows: processor time per evicted block of the same stream of requests, cache full."""

import time

import numpy as np

from engine.prefix.policies import POLICIES
from engine.prefix.tree import PrefixTree
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.workload import Workload

CAPACITIES = (1_000, 10_000, 100_000)
NUM_MEASURED, PROMPT_BLOCKS = 2_000, 20


def scaling_rows(policies: list[str]) -> list[dict[str, object]]:
    """Returns microseconds an eviction by policy and capacity, look-ups and learning of the same requests included."""
    rows = []
    for name in policies:
        if POLICIES.get(name).needs_future:
            continue
        for capacity in CAPACITIES:
            workload = _stream(capacity // PROMPT_BLOCKS + 200, capacity)
            rows.append({"policy": name, "capacity_blocks": capacity, "us_per_eviction": _measure(workload, name, capacity)})
    return rows


def _stream(num_warm: int, seed: int) -> Workload:
    """Returns sessions of two requests each, the second soon after the first, so that every capacity sees the same hits and inserts."""
    rng = np.random.default_rng(seed)
    builder = WorkloadBuilder("stream", 16)
    for i in range(num_warm + NUM_MEASURED):
        blocks = builder.blocks([(i, k) for k in range(PROMPT_BLOCKS)])
        is_agent = bool(rng.random() < 0.3)
        builder.add(Arrival(float(i), i, 16 * PROMPT_BLOCKS // 2, is_agent, is_agent), blocks[: PROMPT_BLOCKS // 2])
        builder.add(Arrival(float(i) + 3.0, i, 16 * PROMPT_BLOCKS, is_agent), blocks)
    return builder.build().predicted(0.77, seed)


def _measure(workload: Workload, name: str, capacity: int) -> float:
    tree = PrefixTree(workload.columns(), capacity, POLICIES.create(name))
    first_measured = workload.num_requests - 2 * NUM_MEASURED
    begun, evicted = 0.0, 0
    for request in workload.requests():
        if request.index == first_measured:
            begun, evicted = time.process_time(), tree.num_evicted
        lease = tree.begin(request)
        tree.extend(lease)
        tree.end(lease)
    return 1e6 * (time.process_time() - begun) / max(tree.num_evicted - evicted, 1)
