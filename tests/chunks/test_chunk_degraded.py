"""A folder that takes no files is memory with one notice; a crash leaves nothing half-written behind."""

import errno
import os

import pytest
from chunk_samples import has_bits_of, make_sample

from engine.chunks.store import ChunkStore

MIB = 2**20
SAMPLES = [make_sample(seed) for seed in range(5)]


def fail_with(code: int):
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def write_half_then_fail(code: int):
    whole = os.write

    def write(fd: int, data) -> int:
        if len(data) < 600:
            raise OSError(code, os.strerror(code))
        return whole(fd, data[:500])

    return write


BREAKAGES = {
    "disk full": ("write", write_half_then_fail(errno.ENOSPC), "No space left on device"),
    "disk full at sync": ("fsync", fail_with(errno.ENOSPC), "No space left on device"),
    "quota": ("write", fail_with(errno.EDQUOT), "quota"),
    "rename refused": ("replace", fail_with(errno.EACCES), "Permission denied"),
    "read-only": ("access", lambda *args: False, "it is read-only"),
}


@pytest.mark.parametrize(("name", "function", "reason"), BREAKAGES.values(), ids=BREAKAGES.keys())
def test_unwritable_folder_degrades_to_memory_and_recovers(name, function, reason, tmp_path, monkeypatch):
    store = ChunkStore(tmp_path, MIB)
    before = store.put(*SAMPLES[0])
    assert store.stats().writable
    monkeypatch.setattr(os, name, function)
    for sample in SAMPLES[1:3]:
        chunk = store.put(*sample)
        assert chunk.source == "memory" and has_bits_of(chunk, sample)
        assert store.get(sample.key).source == "memory"
    (notice,) = store.drain_notices()
    assert reason in notice and notice.endswith("; results stay right.")
    assert not store.stats().writable and store.stats().num_files == 3
    # What was stored is still served, and nothing half-written is left.
    assert has_bits_of(store.get(SAMPLES[0].key), SAMPLES[0]) and has_bits_of(before, SAMPLES[0])
    assert [path.name for path in tmp_path.iterdir()] == [f"{SAMPLES[0].key.hash}.safetensors"]
    monkeypatch.undo()
    assert store.put(*SAMPLES[3]).source == "disk" and store.stats().writable
    assert store.put(*SAMPLES[1]).source == "disk" and store.get(SAMPLES[1].key).source == "disk"
    assert store.stats().num_files == 4 and store.drain_notices() == ()


@pytest.mark.parametrize("below", [False, True], ids=["a file", "below a file"])
def test_folder_that_cannot_be_made_degrades_to_memory(below, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    store = ChunkStore(tmp_path / "file" / "chunks" if below else tmp_path / "file", MIB)
    assert store.get(SAMPLES[0].key) is None
    for sample in SAMPLES:
        assert has_bits_of(store.put(*sample), sample)
        assert has_bits_of(store.get(sample.key), sample)
    (notice,) = store.drain_notices()
    assert "cannot be written to (" in notice and not store.stats().writable
    store.clear()
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_read_only_folder_still_serves_what_it_has(tmp_path, monkeypatch):
    ChunkStore(tmp_path, MIB).put(*SAMPLES[0])
    for name in ("utime", "unlink", "replace"):
        monkeypatch.setattr(os, name, fail_with(errno.EROFS))
    monkeypatch.setattr(os, "access", lambda *args: False)
    store = ChunkStore(tmp_path, MIB)
    assert not store.stats().writable and len(store.drain_notices()) == 1
    chunk = store.get(SAMPLES[0].key)
    assert chunk.source == "disk" and has_bits_of(chunk, SAMPLES[0])
    assert store.put(*SAMPLES[1]).source == "memory" and store.drain_notices() == ()
    store.clear()
    assert "could not be removed" in store.drain_notices()[0]


def test_memory_fallback_has_the_same_bound_and_order(tmp_path):
    (tmp_path / "file").touch()
    size = ChunkStore(None, MIB).put(*SAMPLES[0]).size_bytes
    store = ChunkStore(tmp_path / "file", 3 * size)
    for sample in SAMPLES[:3]:
        store.put(*sample)
    store.get(SAMPLES[0].key)
    dropped = store.get(SAMPLES[1].key)
    store.get(SAMPLES[0].key)
    store.get(SAMPLES[2].key)
    store.put(*SAMPLES[3])
    assert store.get(SAMPLES[1].key) is None and store.num_bytes == 3 * size and store.stats().evictions == 1
    assert has_bits_of(dropped, SAMPLES[1])


def test_folder_deleted_at_run_time_is_made_again(tmp_path):
    folder = tmp_path / "a" / "b"
    store = ChunkStore(folder, MIB)
    path = folder / f"{SAMPLES[0].key.hash}.safetensors"
    store.put(*SAMPLES[0])
    path.unlink()
    folder.rmdir()
    assert store.get(SAMPLES[0].key) is None
    assert store.put(*SAMPLES[0]).source == "disk" and path.exists() and store.drain_notices() == ()


def test_file_is_synced_before_it_gets_its_name_and_the_folder_after(tmp_path, monkeypatch):
    steps = []
    target = tmp_path / f"{SAMPLES[0].key.hash}.safetensors"
    sync, replace = os.fsync, os.replace

    def note_sync(fd: int) -> None:
        steps.append(("sync", os.readlink(f"/proc/self/fd/{fd}")))
        sync(fd)

    def note_replace(source, goal) -> None:
        steps.append(("rename", str(source), str(goal)))
        replace(source, goal)

    store = ChunkStore(tmp_path, MIB)
    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    store.put(*SAMPLES[0])
    temporary = steps[0][1]
    assert steps == [("sync", temporary), ("rename", temporary, str(target)), ("sync", str(tmp_path))]
    assert os.path.dirname(temporary) == str(tmp_path) and temporary.endswith(".tmp")


def test_crash_before_the_rename_leaves_a_miss(tmp_path, monkeypatch):
    class Crash(BaseException):
        """Like a kill: no handler of ours runs for it."""

    def crash(*args: object) -> None:
        raise Crash

    store = ChunkStore(tmp_path, MIB)
    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(Crash):
        store.put(*SAMPLES[0])
    monkeypatch.undo()
    assert len(list(tmp_path.glob("*.tmp"))) == 1
    later = ChunkStore(tmp_path, MIB)
    assert later.get(SAMPLES[0].key) is None and later.num_bytes == 0
    assert later.put(*SAMPLES[0]).source == "disk" and later.drain_notices() == ()
