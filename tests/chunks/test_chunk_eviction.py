"""The folder stays within its capacity: least recently used first, chunks in use last, strangers never."""

import os
import random
import time

import pytest
from chunk_samples import has_bits_of, make_sample

from engine.chunks.folder import ChunkFolder
from engine.chunks.store import ChunkStore

SAMPLES = [make_sample(seed) for seed in range(8)]


@pytest.fixture(scope="module")
def file_bytes(tmp_path_factory):
    return ChunkStore(tmp_path_factory.mktemp("size"), 2**20).put(*SAMPLES[0]).size_bytes


def names(folder) -> list[int]:
    """Returns the numbers of the samples that have a file."""
    return [i for i, sample in enumerate(SAMPLES) if (folder / f"{sample.key.hash}.safetensors").exists()]


def fill(store: ChunkStore, numbers) -> None:
    for i in numbers:
        store.put(*SAMPLES[i])


def test_least_recently_used_goes_first(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 4 * file_bytes)
    fill(store, range(4))
    assert names(tmp_path) == [0, 1, 2, 3] and store.stats().evictions == 0
    store.get(SAMPLES[0].key)
    store.put(*SAMPLES[1])
    fill(store, [4, 5])
    assert names(tmp_path) == [0, 1, 4, 5]
    assert store.stats().evictions == 2 and store.num_bytes == 4 * file_bytes
    assert store.get(SAMPLES[2].key) is None


def test_use_by_another_store_of_the_folder_counts(tmp_path, file_bytes):
    one, two = ChunkStore(tmp_path, 3 * file_bytes), ChunkStore(tmp_path, 3 * file_bytes)
    fill(one, [0, 1, 2])
    assert has_bits_of(two.get(SAMPLES[0].key), SAMPLES[0])
    fill(one, [3, 4])
    assert names(tmp_path) == [0, 3, 4]


def test_use_between_listing_and_removal_is_respected(tmp_path, file_bytes, monkeypatch):
    one, two = ChunkStore(tmp_path, 3 * file_bytes), ChunkStore(tmp_path, 3 * file_bytes)
    fill(one, [0, 1, 2])
    whole = ChunkFolder.entries

    def list_then_use(folder: ChunkFolder):
        entries = whole(folder)
        two.get(SAMPLES[0].key)
        return entries

    monkeypatch.setattr(ChunkFolder, "entries", list_then_use)
    one.put(*SAMPLES[3])
    assert names(tmp_path) == [0, 2, 3]


def test_marking_a_use_changes_nothing_that_is_verified(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 3 * file_bytes)
    first = store.put(*SAMPLES[0]).signature
    path = tmp_path / f"{SAMPLES[0].key.hash}.safetensors"
    used = os.stat(path).st_atime_ns
    assert store.get(SAMPLES[0].key).signature == first
    assert os.stat(path).st_atime_ns > used


def test_put_of_a_valid_chunk_keeps_the_file(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 3 * file_bytes)
    path = tmp_path / f"{SAMPLES[0].key.hash}.safetensors"
    store.put(*SAMPLES[0])
    before = os.stat(path)
    for again in (store, ChunkStore(tmp_path, 3 * file_bytes)):
        again.put(*SAMPLES[0])
        assert (os.stat(path).st_ino, os.stat(path).st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_chunks_in_use_go_last_and_stay_readable(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 3 * file_bytes)
    fill(store, [0, 1, 2])
    in_use = [store.get(SAMPLES[0].key), store.get(SAMPLES[1].key)]
    closed = store.get(SAMPLES[2].key)
    closed.close()
    # 2 was used last, yet nobody is using it.
    store.put(*SAMPLES[3])
    assert names(tmp_path) == [0, 1, 3]
    for i in (4, 5):
        in_use.append(store.put(*SAMPLES[i]))
    assert names(tmp_path) == [1, 4, 5]
    for i in (6, 7):
        in_use.append(store.put(*SAMPLES[i]))
    assert names(tmp_path) == [5, 6, 7]
    for chunk, i in zip(in_use, (0, 1, 4, 5, 6, 7), strict=True):
        assert has_bits_of(chunk, SAMPLES[i])
        # A second method of the same request reads again after the first one closed.
        chunk.close()
        assert has_bits_of(chunk, SAMPLES[i])


def test_closed_chunk_that_is_held_outlives_one_that_is_not(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 2 * file_bytes)
    held = store.put(*SAMPLES[0])
    held.close()
    store.put(*SAMPLES[1])
    store.put(*SAMPLES[2])
    assert names(tmp_path) == [0, 2] and has_bits_of(held, SAMPLES[0])


def test_what_was_just_put_stays_even_when_all_else_is_newer(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 2 * file_bytes)
    fill(store, [0, 1])
    for path in tmp_path.iterdir():
        os.utime(path, ns=(time.time_ns() + 10**12,) * 2)
    store.put(*SAMPLES[2])
    assert 2 in names(tmp_path) and len(names(tmp_path)) == 2


@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "memory"])
def test_chunk_larger_than_the_store_is_its_callers_only(on_disk, tmp_path):
    store = ChunkStore(tmp_path if on_disk else None, 500)
    chunk = store.put(*SAMPLES[0])
    assert chunk.source == "memory" and has_bits_of(chunk, SAMPLES[0])
    assert store.get(SAMPLES[0].key) is None and store.num_bytes == 0
    store.put(*SAMPLES[0])
    (notice,) = store.drain_notices()
    assert "larger than the whole chunk store" in notice and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "memory"])
def test_random_use_matches_a_plain_list(on_disk, tmp_path, file_bytes):
    """The oracle: a list of hashes, oldest use first, of at most three chunks."""
    size = file_bytes if on_disk else ChunkStore(None, 2**20).put(*SAMPLES[0]).size_bytes
    store = ChunkStore(tmp_path if on_disk else None, 3 * size + size // 2)
    order: list[int] = []
    choices = random.Random(5)
    for _ in range(150):
        i = choices.randrange(len(SAMPLES))
        if choices.random() < 0.5:
            assert (store.get(SAMPLES[i].key) is not None) == (i in order)
            order = [j for j in order if j != i] + [i] * (i in order)
        else:
            assert has_bits_of(store.put(*SAMPLES[i]), SAMPLES[i])
            order = ([j for j in order if j != i] + [i])[-3:]
        assert store.num_bytes == size * len(order) <= store.stats().capacity_bytes
    assert store.stats().num_files == 3
    assert {i for i in range(8) if store.get(SAMPLES[i].key) is not None} == set(order)


def test_smaller_capacity_trims_at_start(tmp_path, file_bytes):
    fill(ChunkStore(tmp_path, 8 * file_bytes), range(5))
    store = ChunkStore(tmp_path, 2 * file_bytes)
    assert names(tmp_path) == [3, 4] and store.stats().evictions == 3


def test_set_aside_files_make_room_first(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 3 * file_bytes)
    fill(store, [0, 1])
    path = tmp_path / f"{SAMPLES[2].key.hash}.safetensors"
    path.write_bytes(bytes(file_bytes))
    assert store.get(SAMPLES[2].key) is None
    assert store.num_bytes == 3 * file_bytes
    store.put(*SAMPLES[3])
    assert names(tmp_path) == [0, 1, 3] and store.num_bytes == 3 * file_bytes and store.stats().evictions == 0


def test_old_temporary_files_are_cleaned_and_young_ones_left(tmp_path, file_bytes):
    old, young = (tmp_path / f"{SAMPLES[0].key.hash}.{tag}.tmp" for tag in ("0a", "0b"))
    for path in (old, young):
        path.write_bytes(b"half a chunk")
    os.utime(old, (time.time() - 3700, time.time() - 3700))
    store = ChunkStore(tmp_path, 3 * file_bytes)
    assert not old.exists() and young.exists()
    assert store.get(SAMPLES[0].key) is None and store.num_bytes == 0 and store.drain_notices() == ()


def test_foreign_files_are_neither_counted_nor_touched(tmp_path, file_bytes):
    foreign = [tmp_path / name for name in ("model.safetensors", "notes.txt", "a.tmp", f"{'g' * 32}.safetensors", "x.bad")]
    for path in foreign:
        path.write_bytes(bytes(10 * file_bytes))
        os.utime(path, (0, 0))
    store = ChunkStore(tmp_path, 2 * file_bytes)
    fill(store, range(4))
    assert store.num_bytes == 2 * file_bytes
    store.clear()
    assert sorted(tmp_path.iterdir()) == sorted(foreign)


@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "memory"])
def test_clear_drops_everything_but_running_readers_finish(on_disk, tmp_path):
    store = ChunkStore(tmp_path if on_disk else None, 2**20)
    chunk = store.put(*SAMPLES[0])
    fill(store, [1, 2])
    store.clear()
    assert store.num_bytes == 0 and store.stats().num_files == 0 and store.get(SAMPLES[1].key) is None
    assert has_bits_of(chunk, SAMPLES[0])
    assert has_bits_of(store.put(*SAMPLES[1]), SAMPLES[1]) and store.stats().num_files == 1


def test_stats_count(tmp_path, file_bytes):
    store = ChunkStore(tmp_path, 3 * file_bytes)
    store.get(SAMPLES[0].key)
    fill(store, [0, 1])
    for _ in range(3):
        store.get(SAMPLES[1].key)
    stats = store.stats()
    assert (stats.hits, stats.misses, stats.evictions, stats.num_files) == (3, 1, 0, 2)
    assert (stats.size_bytes, stats.capacity_bytes) == (2 * file_bytes, 3 * file_bytes)
    assert stats.folder == str(tmp_path) and stats.writable
    assert ChunkStore(None, 5).stats().folder is None
