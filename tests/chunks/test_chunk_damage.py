"""A file that cannot be trusted is a miss with a notice: never an exception, never a hang, never wrong bits."""

import errno
import json
import os
from pathlib import Path

import pytest
from chunk_samples import has_bits_of, make_sample

from engine.chunks import verify
from engine.chunks.layout import encode, prepare_tensors
from engine.chunks.store import ChunkStore

MIB = 2**20
SAMPLE = make_sample()
OTHER = make_sample(100)
GOOD = encode(SAMPLE.key, prepare_tensors(*SAMPLE))
HEADER_LEN = int.from_bytes(GOOD[:8], "little")


def with_header(change) -> bytes:
    """Returns a file of the right length whose header was changed; the data area stays."""
    header = json.loads(GOOD[8 : 8 + HEADER_LEN])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return (HEADER_LEN).to_bytes(8, "little") + text.ljust(HEADER_LEN) + GOOD[8 + HEADER_LEN :]


def swap_layers(header) -> None:
    header["layer.000.k"], header["layer.001.k"] = header["layer.001.k"], header["layer.000.k"]


def set_at(*path_and_value):
    *path, last, value = path_and_value

    def change(header) -> None:
        for step in path:
            header = header[step]
        header[last] = value

    return change


BAD_FILES = {
    "empty": b"",
    "seven bytes": GOOD[:7],
    "header cut": GOOD[:100],
    "last byte missing": GOOD[:-1],
    "a byte too many": GOOD + b"\0",
    "absurd header length": (2**64 - 1).to_bytes(8, "little") + GOOD[8:],
    "header of all bytes": (len(GOOD) - 8).to_bytes(8, "little") + GOOD[8:],
    "zeros": bytes(len(GOOD)),
    "other chunk": encode(OTHER.key, prepare_tensors(*OTHER)),
    "text": b"hello, this is not a chunk at all",
    "header not JSON": GOOD[:8] + b"x" * HEADER_LEN + GOOD[8 + HEADER_LEN :],
    "header not UTF-8": GOOD[:8] + b"\xff" * HEADER_LEN + GOOD[8 + HEADER_LEN :],
    "header nested": (100_000).to_bytes(8, "little") + b"[" * 100_000 + GOOD[8 + HEADER_LEN :],
    "header a list": GOOD[:8] + b"[]".ljust(HEADER_LEN) + GOOD[8 + HEADER_LEN :],
    "no metadata": with_header(lambda header: header.pop("__metadata__")),
    "metadata a string": with_header(set_at("__metadata__", "x")),
    "other format": with_header(set_at("__metadata__", "format", "fusescope-chunk/0")),
    "other hash": with_header(set_at("__metadata__", "hash", OTHER.key.hash)),
    "no checksum": with_header(lambda header: header["__metadata__"].pop("checksum")),
    "other shape": with_header(set_at("layer.001.v", "shape", [2, 5, 4])),
    "other dtype": with_header(set_at("layer.001.v", "dtype", "I32")),
    "offsets outside": with_header(set_at("layer.001.v", "data_offsets", [2**40, 2**40 + 160])),
    "offsets a string": with_header(set_at("layer.001.v", "data_offsets", "x")),
    "layers swapped": with_header(swap_layers),
    "tensor missing": with_header(lambda header: header.pop("layer.002.v")),
    "data flipped": GOOD[:-1] + bytes([GOOD[-1] ^ 1]),
}


def chunk_path(folder: Path) -> Path:
    return folder / f"{SAMPLE.key.hash}.safetensors"


def set_aside_path(folder: Path) -> Path:
    return folder / f"{SAMPLE.key.hash}.safetensors.bad"


def test_the_untouched_file_is_read(tmp_path):
    chunk_path(tmp_path).write_bytes(GOOD)
    store = ChunkStore(tmp_path, MIB)
    assert has_bits_of(store.get(SAMPLE.key), SAMPLE) and store.drain_notices() == ()


@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_damaged_file_is_set_aside_and_stored_anew(content, tmp_path):
    chunk_path(tmp_path).write_bytes(content)
    store = ChunkStore(tmp_path, MIB)
    assert store.get(SAMPLE.key) is None
    assert set_aside_path(tmp_path).read_bytes() == content and not chunk_path(tmp_path).exists()
    (notice,) = store.drain_notices()
    assert SAMPLE.key.hash in notice and notice.endswith("; the chunk is computed again.") and notice.count(". ") == 0
    assert store.get(SAMPLE.key) is None and store.drain_notices() == ()
    assert has_bits_of(store.put(*SAMPLE), SAMPLE)
    assert has_bits_of(ChunkStore(tmp_path, MIB).get(SAMPLE.key), SAMPLE)


def test_long_header_is_not_read(tmp_path):
    header_len = 2**20 + 8
    with open(chunk_path(tmp_path), "wb") as file:
        file.write(header_len.to_bytes(8, "little"))
        file.truncate(header_len + len(GOOD) - HEADER_LEN)
    store = ChunkStore(tmp_path, 4 * MIB)
    assert store.get(SAMPLE.key) is None and "its length is not its chunk's" in store.drain_notices()[0]


def test_put_over_a_damaged_file_replaces_it(tmp_path):
    chunk_path(tmp_path).write_bytes(BAD_FILES["data flipped"])
    store = ChunkStore(tmp_path, MIB)
    chunk = store.put(*SAMPLE)
    assert chunk.source == "disk" and has_bits_of(chunk, SAMPLE) and len(store.drain_notices()) == 1


def test_no_flipped_byte_yields_wrong_bits(tmp_path):
    store = ChunkStore(tmp_path, MIB)
    num_missed = 0
    for position in [*range(0, 8 + HEADER_LEN, 3), *range(8 + HEADER_LEN, len(GOOD), 13)]:
        damaged = bytearray(GOOD)
        damaged[position] ^= 1 << position % 8
        chunk_path(tmp_path).write_bytes(damaged)
        chunk = store.get(SAMPLE.key)
        num_missed += chunk is None
        # A flip in what only people read (the date, say) may pass; wrong KV may not.
        assert chunk is None or has_bits_of(chunk, SAMPLE), position
    assert num_missed > 300


def test_named_pipe_and_folder_do_not_hang_or_raise(tmp_path):
    store = ChunkStore(tmp_path, MIB)
    os.mkfifo(chunk_path(tmp_path))
    assert store.get(SAMPLE.key) is None
    assert "not a regular file" in store.drain_notices()[0]
    set_aside_path(tmp_path).unlink()
    chunk_path(tmp_path).mkdir()
    assert store.get(SAMPLE.key) is None
    assert has_bits_of(store.put(*SAMPLE), SAMPLE)


def test_folder_that_cannot_be_set_aside_falls_back_to_memory(tmp_path):
    chunk_path(tmp_path).mkdir()
    set_aside_path(tmp_path).write_bytes(b"in the way")
    store = ChunkStore(tmp_path, MIB)
    assert has_bits_of(store.put(*SAMPLE), SAMPLE)
    assert store.get(SAMPLE.key).source == "memory"
    notices = store.drain_notices()
    assert len(notices) == 2 and "could not be set aside" in notices[0] and "cannot be written to" in notices[1]


def test_damage_after_the_first_look_is_noticed(tmp_path):
    store = ChunkStore(tmp_path, MIB)
    store.put(*SAMPLE)
    status = os.stat(chunk_path(tmp_path))
    with open(chunk_path(tmp_path), "r+b") as file:
        file.seek(-5, os.SEEK_END)
        file.write(b"\0\1\2\3\4")
    os.utime(chunk_path(tmp_path), ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert store.get(SAMPLE.key) is None and "checksum" in store.drain_notices()[0]


def test_checksum_is_computed_once_until_the_file_changes(tmp_path, monkeypatch):
    chunk_path(tmp_path).write_bytes(GOOD)
    looked = []
    whole = verify._compute_checksum
    monkeypatch.setattr(verify, "_compute_checksum", lambda *args: looked.append(1) or whole(*args))
    store = ChunkStore(tmp_path, MIB)
    for _ in range(3):
        assert has_bits_of(store.get(SAMPLE.key), SAMPLE)
        store.put(*OTHER)
    assert len(looked) == 1
    chunk_path(tmp_path).unlink()
    chunk_path(tmp_path).write_bytes(GOOD)
    for _ in range(3):
        assert has_bits_of(store.get(SAMPLE.key), SAMPLE)
    assert len(looked) == 2
    assert has_bits_of(ChunkStore(tmp_path, MIB).get(SAMPLE.key), SAMPLE)
    assert len(looked) == 3


def test_few_set_aside_files_are_kept_and_count(tmp_path):
    store = ChunkStore(tmp_path, MIB)
    samples = [make_sample(seed) for seed in range(6)]
    for sample in samples:
        (tmp_path / f"{sample.key.hash}.safetensors").write_bytes(b"junk")
        assert store.get(sample.key) is None
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"{sample.key.hash}.safetensors.bad" for sample in samples[-3:]}
    assert store.num_bytes == 12 and store.stats().num_files == 0 and len(store.drain_notices()) == 6


@pytest.mark.parametrize("code", [errno.EACCES, errno.EMFILE, errno.EIO])
def test_file_that_cannot_be_opened_is_a_miss_with_one_notice(code, tmp_path, monkeypatch):
    store = ChunkStore(tmp_path, MIB)
    store.put(*SAMPLE)
    whole = os.open

    def fail(path, flags, *args, **kwargs):
        if str(path).endswith(".safetensors"):
            raise OSError(code, os.strerror(code))
        return whole(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", fail)
    assert store.get(SAMPLE.key) is None and store.get(SAMPLE.key) is None
    (notice,) = store.drain_notices()
    assert os.strerror(code) in notice
    monkeypatch.undo()
    assert has_bits_of(store.get(SAMPLE.key), SAMPLE)


def test_crowd_of_notices_is_bounded(tmp_path):
    store = ChunkStore(tmp_path, MIB)
    for _ in range(100):
        chunk_path(tmp_path).write_bytes(b"junk")
        assert store.get(SAMPLE.key) is None
    assert 1 <= len(store.drain_notices()) <= 64
