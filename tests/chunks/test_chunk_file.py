"""Reading a stored chunk: bit for bit, layer by layer, from many threads, through eviction and failure."""

import errno
import itertools
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from chunk_samples import DTYPES, has_bits_of, make_sample

from engine.chunks.store import ChunkStore
from engine.errors import StoreError

MIB = 2**20


def make_store(place: str, tmp_path) -> ChunkStore:
    return ChunkStore(tmp_path / "chunks" if place == "disk" else None, MIB)


def chunk_file(store: ChunkStore, sample):
    return store.stats().folder + f"/{sample.key.hash}.safetensors"


def num_open_files(folder) -> int:
    """Returns how many files below `folder` this process has open."""
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).startswith(str(folder)) for link in links if os.path.lexists(link))


@pytest.mark.parametrize("place", ["disk", "memory"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("num_tokens", "num_layers"), [(1, 1), (5, 3), (130, 12)])
def test_read_back_equals_put_bit_for_bit(place, dtype, num_tokens, num_layers, tmp_path):
    sample = make_sample(3, dtype, num_tokens, num_layers)
    store = make_store(place, tmp_path)
    put = store.put(*sample)
    got = store.get(sample.key)
    for chunk in (put, got):
        assert chunk.source == place and chunk.num_tokens == num_tokens and chunk.key == sample.key
        assert has_bits_of(chunk, sample)
    # A store that never saw the file written verifies and reads the same.
    if place == "disk":
        assert has_bits_of(make_store(place, tmp_path).get(sample.key), sample)
        assert got.size_bytes == os.path.getsize(chunk_file(store, sample))


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_stored_chunk_does_not_follow_its_source(place, tmp_path):
    sample = make_sample()
    kept = make_sample()
    chunk = make_store(place, tmp_path).put(*sample)
    sample.keys.view(torch.uint8).zero_()
    sample.values.view(torch.uint8).zero_()
    assert has_bits_of(chunk, kept)


@pytest.mark.parametrize("place", ["disk", "memory"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_key_norms_are_the_mean_over_heads(place, dtype, tmp_path):
    sample = make_sample(0, dtype)
    keys = torch.randn(sample.keys.shape).to(sample.keys.dtype)
    put = make_store(place, tmp_path).put(sample.key, keys, sample.values, sample.importance)
    wanted = torch.zeros(keys.shape[:2])
    for layer, token in itertools.product(range(keys.shape[0]), range(keys.shape[1])):
        wanted[layer, token] = sum(float((keys[layer, token, head].double() ** 2).sum()) ** 0.5 for head in range(2)) / 2
    assert put.key_norms.dtype == torch.float32 and put.key_norms.shape == wanted.shape
    assert torch.allclose(put.key_norms, wanted, rtol=1e-5)
    assert torch.equal(put.importance, sample.importance)
    if place == "disk":
        found = make_store(place, tmp_path).get(sample.key)
        assert torch.equal(found.key_norms, put.key_norms) and torch.equal(found.importance, put.importance)


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_the_time_it_took_is_kept_with_the_chunk(place, tmp_path):
    store, sample = make_store(place, tmp_path), make_sample()
    assert store.put(*sample, time_s=1.25).time_s == store.get(sample.key).time_s == 1.25


@pytest.mark.parametrize("dtype", DTYPES)
def test_file_lays_layers_out_in_order(dtype, tmp_path):
    sample = make_sample(1, dtype, num_tokens=7, num_layers=12)
    store = make_store("disk", tmp_path)
    store.put(*sample)
    with open(chunk_file(store, sample), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        area = file.read()
    metadata = header.pop("__metadata__")
    names = sorted(header, key=lambda name: header[name]["data_offsets"][0])
    assert names == ["importance", "key_norms", *(f"layer.{layer:03d}.{part}" for layer in range(12) for part in "kv")]
    stops = [header[name]["data_offsets"][1] for name in names]
    assert [header[name]["data_offsets"][0] for name in names] == [0, *stops[:-1]] and stops[-1] == len(area)
    start, stop = header["layer.007.v"]["data_offsets"]
    assert area[start:stop] == bytes(sample.values[7].view(torch.uint8).numpy())
    assert metadata["num_tokens"] == "7" and metadata["hash"] == sample.key.hash and metadata["dtype"] == dtype


@pytest.mark.parametrize("place", ["disk", "memory"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_row_range_of_a_bigger_tensor_is_filled_and_nothing_else(place, dtype, tmp_path):
    sample = make_sample(2, dtype)
    chunk = make_store(place, tmp_path).put(*sample)
    with torch.inference_mode():
        big = torch.full((9, 2, 4), float("nan"), dtype=sample.keys.dtype)
        before = big.clone()
        assert chunk.read_keys(1, big[3:8]) == big[3:8].nbytes
    assert torch.equal(big[3:8].view(torch.uint8), sample.keys[1].view(torch.uint8))
    for rows in (slice(0, 3), slice(8, 9)):
        assert torch.equal(big[rows].view(torch.uint8), before[rows].view(torch.uint8))


@pytest.mark.parametrize(
    "out",
    [
        torch.empty(4, 2, 4),
        torch.empty(5, 2, 4, dtype=torch.float16),
        torch.empty(5, 4, 2).transpose(1, 2),
        torch.empty(5, 2, 4, device="meta"),
    ],
    ids=["shape", "dtype", "strided", "device"],
)
def test_wrong_target_is_refused(out, tmp_path):
    chunk = make_store("disk", tmp_path).put(*make_sample())
    with pytest.raises(ValueError, match="it must be"):
        chunk.read_keys(0, out)
    for layer in (-1, 3):
        with pytest.raises(ValueError, match="layers 0 to 2"):
            chunk.read_values(layer, torch.empty(5, 2, 4))


@pytest.mark.parametrize("wrong", ["keys", "values", "dtype", "KVzip scores"])
def test_put_of_other_shapes_than_the_key_says_is_refused(wrong, tmp_path):
    key, keys, values, importance = make_sample()
    keys = keys[:, :4] if wrong == "keys" else keys.half() if wrong == "dtype" else keys
    values = values[:2] if wrong == "values" else values
    importance = importance[:, :4] if wrong == "KVzip scores" else importance
    with pytest.raises(ValueError, match="its key says torch"):
        make_store("disk", tmp_path).put(key, keys, values, importance)


def test_put_takes_tensors_that_are_not_contiguous(tmp_path):
    sample = make_sample()
    strided = sample.keys.transpose(1, 2).contiguous().transpose(1, 2)
    assert not strided.is_contiguous()
    assert has_bits_of(make_store("disk", tmp_path).put(sample.key, strided, sample.values.requires_grad_(), sample.importance), sample)


def test_threads_read_one_chunk_while_it_is_closed(tmp_path):
    sample = make_sample(0, "bfloat16", num_tokens=64, num_layers=6)
    chunk = make_store("disk", tmp_path).put(*sample)

    def read(_: int) -> bool:
        right = has_bits_of(chunk, sample)
        chunk.close()
        return right

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(64)))


def test_files_are_open_only_from_first_read_to_close(tmp_path):
    store = make_store("disk", tmp_path)
    samples = [make_sample(seed) for seed in range(20)]
    chunks = [store.put(*sample) for sample in samples] + [store.get(sample.key) for sample in samples]
    assert num_open_files(tmp_path) == 0
    out = torch.empty(5, 2, 4)
    for chunk in chunks:
        chunk.read_keys(0, out)
    assert num_open_files(tmp_path) == len(chunks)
    for chunk in chunks[:20]:
        chunk.close()
        chunk.close()
    assert num_open_files(tmp_path) == 20
    del chunk, chunks
    assert num_open_files(tmp_path) == 0


def test_reading_after_close_opens_again(tmp_path):
    sample = make_sample()
    chunk = make_store("disk", tmp_path).put(*sample)
    assert chunk.in_use
    chunk.close()
    assert not chunk.in_use
    assert has_bits_of(chunk, sample) and chunk.in_use


def test_removal_by_another_process_does_not_hurt_an_open_chunk(tmp_path):
    sample = make_sample()
    store = make_store("disk", tmp_path)
    chunk = store.put(*sample)
    chunk.read_keys(0, torch.empty(5, 2, 4))
    os.unlink(chunk_file(store, sample))
    chunk.close()
    assert has_bits_of(chunk, sample)
    del chunk
    assert num_open_files(tmp_path) == 0


def test_removed_before_it_was_opened_is_a_store_error(tmp_path):
    sample = make_sample()
    store = make_store("disk", tmp_path)
    chunk = store.put(*sample)
    os.unlink(chunk_file(store, sample))
    with pytest.raises(StoreError, match=r"cannot be read \(No such file or directory\); compute it again\.$"):
        chunk.read_keys(0, torch.empty(5, 2, 4))


def test_stored_anew_under_a_closed_chunk_is_verified_and_read(tmp_path):
    sample = make_sample()
    store = make_store("disk", tmp_path)
    chunk = store.put(*sample)
    os.unlink(chunk_file(store, sample))
    make_store("disk", tmp_path).put(*sample)
    assert has_bits_of(chunk, sample)


def test_damaged_under_a_closed_chunk_is_a_store_error(tmp_path):
    sample = make_sample()
    store = make_store("disk", tmp_path)
    chunk = store.put(*sample)
    with open(chunk_file(store, sample), "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(bytes([sample.values.view(torch.uint8).flatten()[-1] ^ 1]))
    os.utime(chunk_file(store, sample), ns=(0, 0))
    with pytest.raises(StoreError, match="was changed and its checksum does not match"):
        chunk.read_keys(0, torch.empty(5, 2, 4))


def test_truncated_while_open_is_a_store_error(tmp_path):
    sample = make_sample()
    store = make_store("disk", tmp_path)
    chunk = store.put(*sample)
    chunk.read_keys(0, torch.empty(5, 2, 4))
    os.truncate(chunk_file(store, sample), chunk.size_bytes - 1)
    with pytest.raises(StoreError, match="became shorter"):
        chunk.read_values(2, torch.empty(5, 2, 4))


def test_read_in_pieces_is_put_together(tmp_path, monkeypatch):
    sample = make_sample()
    chunk = make_store("disk", tmp_path).put(*sample)
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: whole(fd, [buffers[0][:7]], offset))
    assert has_bits_of(chunk, sample)


def test_read_error_is_a_store_error(tmp_path, monkeypatch):
    chunk = make_store("disk", tmp_path).put(*make_sample())

    def fail(*args: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(StoreError, match="Input/output error"):
        chunk.read_keys(0, torch.empty(5, 2, 4))


def test_dropping_pages_asks_the_system_for_each_file_and_changes_no_bit(tmp_path, monkeypatch):
    asked = []
    advise = os.posix_fadvise

    def record(fd, start, length, advice):
        asked.append((os.readlink(f"/proc/self/fd/{fd}"), start, length, advice))
        advise(fd, start, length, advice)

    monkeypatch.setattr(os, "posix_fadvise", record)
    sample, held = make_sample(), make_store("memory", tmp_path).put(*make_sample())
    store = make_store("disk", tmp_path)
    chunk = store.put(*sample)
    chunk.drop_pages()
    held.drop_pages()
    assert asked == [(chunk_file(store, sample), 0, 0, os.POSIX_FADV_DONTNEED)]
    assert has_bits_of(chunk, sample) and has_bits_of(held, sample)
