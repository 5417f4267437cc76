"""Reads past the page cache give the same bytes as those through it; where they cannot be had, the store says why and reads on."""

import errno
import fcntl
import os

import pytest
import torch
from chunk_samples import has_bits_of, make_sample

from engine.chunks.direct import ALIGN, DirectFile, direct_hindrance
from engine.chunks.store import ChunkStore
from engine.chunks.verify import FileHandle
from engine.errors import StoreError

MIB = 2**20


@pytest.fixture
def folder(tmp_path):
    """Returns a folder whose file system takes O_DIRECT."""
    hindrance = direct_hindrance(tmp_path)
    if hindrance is not None:
        pytest.skip(hindrance)
    return tmp_path


@pytest.mark.parametrize("size", [1, 511, ALIGN - 1, ALIGN, ALIGN + 1, 3 * ALIGN + 7, 8 * ALIGN])
def test_any_offset_and_length_gives_the_bytes_of_an_ordinary_read(folder, monkeypatch, size):
    # Of two blocks, so that longer reads take several.
    monkeypatch.setattr("engine.chunks.direct._BLOCK_BYTES", 2 * ALIGN)
    content = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(size)).numpy().tobytes()
    (folder / "file").write_bytes(content)
    direct = DirectFile(folder / "file")
    for offset in {0, 1, size // 2, size - 1, min(size, ALIGN) - 1}:
        for length in {0, min(1, size - offset), (size - offset) // 3, size - offset}:
            found = bytearray(b"\xaa" * length)
            assert direct.read_exactly(memoryview(found), offset)
            assert bytes(found) == content[offset : offset + length], (offset, length)


@pytest.mark.parametrize(
    ("size", "offset", "length"), [(100, 90, 11), (ALIGN, ALIGN, 1), (ALIGN + 5, ALIGN, 6), (0, 0, 1), (9, 5 * ALIGN, 2)]
)
def test_a_file_that_ends_early_is_told(folder, size, offset, length):
    (folder / "file").write_bytes(bytes(size))
    for file in (DirectFile(folder / "file"), FileHandle(folder / "file")):
        assert not file.read_exactly(memoryview(bytearray(length)), offset)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("num_tokens", [1, 5, 333])
def test_a_store_reads_its_chunks_directly_bit_for_bit(folder, dtype, num_tokens):
    sample = make_sample(dtype=dtype, num_tokens=num_tokens)
    store = ChunkStore(folder, MIB, direct=True)
    chunk = store.put(*sample)
    assert store.direct_hindrance is None and has_bits_of(chunk, sample)
    opened = [fd for fd in os.listdir("/proc/self/fd") if _target(fd).endswith(f"{sample.key.hash}.safetensors")]
    assert opened and all(fcntl.fcntl(int(fd), fcntl.F_GETFL) & os.O_DIRECT for fd in opened)
    chunk.close()
    assert has_bits_of(ChunkStore(folder, MIB, direct=True).get(sample.key), sample)


def test_a_chunk_cut_short_is_a_store_error(folder):
    sample = make_sample()
    chunk = ChunkStore(folder, MIB, direct=True).put(*sample)
    chunk.read_keys(0, torch.empty(5, 2, 4))
    os.truncate(folder / f"{sample.key.hash}.safetensors", chunk.size_bytes - 1)
    with pytest.raises(StoreError, match="became shorter"):
        chunk.read_values(2, torch.empty(5, 2, 4))


def test_a_file_system_that_refuses_is_read_through_the_cache(tmp_path, monkeypatch):
    plain_open = os.open

    def refuse(path, flags, *more, **named):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return plain_open(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    store, sample = ChunkStore(tmp_path, MIB, direct=True), make_sample()
    assert store.direct_hindrance == "a direct read failed there (Invalid argument)"
    assert has_bits_of(store.put(*sample), sample)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("direct-")]


def test_stores_that_read_otherwise_say_so(tmp_path):
    assert ChunkStore(tmp_path, MIB).direct_hindrance == "the store reads through it"
    assert ChunkStore(None, MIB, direct=True).direct_hindrance == "chunks are in memory"


def _target(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""
