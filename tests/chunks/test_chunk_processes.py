"""Two processes share one folder: putting, reading and evicting at the same time."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue
from pathlib import Path

import torch
from chunk_samples import has_bits_of, make_sample

from engine.chunks.store import ChunkStore
from engine.errors import StoreError

NUM_SAMPLES = 6
NUM_ROUNDS = 120


def hammer(folder: Path, capacity_bytes: int, seed: int) -> dict[str, int]:
    """Puts and reads random chunks and returns counts of what happened."""
    store = ChunkStore(folder, capacity_bytes)
    samples = [make_sample(i, num_tokens=64) for i in range(NUM_SAMPLES)]
    order = torch.randint(NUM_SAMPLES, (NUM_ROUNDS,), generator=torch.Generator().manual_seed(seed)).tolist()
    counts = dict.fromkeys(("hits", "wrong", "lost"), 0)
    for i in order:
        found = store.get(samples[i].key)
        chunk = found or store.put(*samples[i])
        counts["hits"] += found is not None
        try:
            counts["wrong"] += not has_bits_of(chunk, samples[i])
        except StoreError:
            # Evicted by the other process before the first read: allowed, and rare.
            counts["lost"] += 1
        chunk.close()
    stats = store.stats()
    return {**counts, "notices": len(store.drain_notices()), "evictions": stats.evictions, "degraded": not stats.writable}


def hammer_phases(phases: list[tuple[Path, int]], seed: int, wait: Callable[[], int]) -> list[dict[str, int]]:
    """Hammers one folder after the other, in step with the other process."""
    counts = []
    for folder, capacity_bytes in phases:
        wait()
        counts.append(hammer(folder, capacity_bytes, seed))
    return counts


def report_phases(queue: "Queue[list[dict[str, int]]]", phases: list[tuple[Path, int]], wait: Callable[[], int]) -> None:
    """Runs in the other process."""
    queue.put(hammer_phases(phases, 2, wait))


def test_processes_put_read_and_evict_at_once(tmp_path):
    size = ChunkStore(tmp_path / "size", 2**20).put(*make_sample(0, num_tokens=64)).size_bytes
    # First all chunks fit, so that both put the same key at once; then half of them, so that both evict.
    phases = [(tmp_path / "roomy", NUM_SAMPLES * size), (tmp_path / "tight", 3 * size)]
    spawn = multiprocessing.get_context("spawn")
    barrier, queue = spawn.Barrier(2, timeout=60), spawn.Queue()
    other = spawn.Process(target=report_phases, args=(queue, phases, barrier.wait), daemon=True)
    other.start()
    mine = hammer_phases(phases, 1, barrier.wait)
    both = list(zip(mine, queue.get(timeout=60), strict=True))
    other.join(timeout=60)
    assert other.exitcode == 0
    for (folder, capacity_bytes), counts in zip(phases, both, strict=True):
        for one in counts:
            assert one["hits"] > 0 and not one["degraded"] and one["notices"] == 0, counts
            assert one["wrong"] == 0 and one["lost"] <= NUM_ROUNDS / 20, counts
        assert (sum(one["evictions"] for one in counts) > 0) == (folder.name == "tight"), counts
        left = [path.name for path in folder.iterdir()]
        assert all(name.endswith(".safetensors") for name in left)
        # Either process may have stored one before it saw the other's.
        assert len(left) * size <= capacity_bytes + size * (folder.name == "tight")


def test_threads_put_the_same_key_at_once(tmp_path):
    store = ChunkStore(tmp_path, 2**20)
    samples = [make_sample(i) for i in range(4)]
    with ThreadPoolExecutor(8) as pool:
        chunks = list(pool.map(lambda i: store.put(*samples[i % 4]), range(64)))
    for i, chunk in enumerate(chunks):
        assert chunk.source == "disk" and has_bits_of(chunk, samples[i % 4])
    assert len(list(tmp_path.iterdir())) == 4 and store.stats().num_files == 4 and store.drain_notices() == ()
