"""Rotating stored keys and merging fresh rows in one pass equals the float32 reference; what has no reader is not touched."""

import pytest
import torch
from kernel_samples import NUM_KEYS, ROWS, draw, largest_error, refused, scattered

from kernels import reference
from kernels.batch import KeysValues, Pages, merge_sources
from kernels.rotate_scatter_keys import rotate_keys, rotate_scatter_keys

# One rounding to the type, of numbers up to 8.
TOLERANCE = {torch.float32: 1e-6, torch.float16: 4e-3, torch.bfloat16: 6e-2}
NUM_CONTEXT = 50


def tables(num_tokens, dim, device, dtype=torch.float32):
    angles = draw(num_tokens, dim // 2, seed=9, device=device)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def pair(num_rows, dim, seed, device, num_heads=2, dtype=torch.float32):
    return KeysValues(*(draw(num_rows, num_heads, dim, seed=seed + i, device=device, dtype=dtype) for i in range(2)))


def empty(num_slots, dim, num_heads=2, device="cpu", dtype=torch.float32):
    """Returns a cache full of NaN whose keys lie head by head, as the engine's do."""
    keys = torch.full((num_heads, num_slots, dim), float("nan"), device=device, dtype=dtype).transpose(0, 1)
    return KeysValues(keys, torch.full((num_slots, num_heads, dim), float("nan"), device=device, dtype=dtype))


def merged_rows(name):
    """Returns sorted positions of fresh rows: some of the context, and all behind it."""
    return torch.unique(torch.cat([ROWS[name], torch.arange(NUM_CONTEXT, NUM_KEYS)]))


@pytest.mark.parametrize("num_heads", [1, 3, 8])
@pytest.mark.parametrize("dim", [64, 80, 96, 128, 256])
@pytest.mark.parametrize("name", ROWS)
def test_merging_equals_reference(device, name, dim, num_heads):
    positions = merged_rows(name).to(device)
    stored, fresh = pair(NUM_CONTEXT, dim, 1, device, num_heads), pair(len(positions), dim, 3, device, num_heads)
    source = merge_sources(positions, NUM_KEYS)
    # A chunk whose rows are all fresh is never read from disk: what stands in its buffer may be anything.
    for rows in stored:
        rows[positions[positions < NUM_CONTEXT]] = float("nan")
    expected, got = (empty(NUM_KEYS + 5, dim, num_heads, device) for _ in range(2))
    reference.rotate_scatter_keys(stored, fresh, source, *tables(NUM_KEYS, dim, device), expected)
    rotate_scatter_keys(stored, fresh, source, *tables(NUM_KEYS, dim, device), got)
    for ours, law in zip(got, expected, strict=True):
        assert largest_error(ours[:NUM_KEYS], law[:NUM_KEYS]) < TOLERANCE[torch.float32]
        assert ours[NUM_KEYS:].isnan().all()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_values_are_copied_bit_for_bit(device, dtype):
    positions = merged_rows("random_rows").to(device)
    stored, fresh = pair(NUM_CONTEXT, 80, 1, device, dtype=dtype), pair(len(positions), 80, 3, device, dtype=dtype)
    source, (cos, sin) = merge_sources(positions, NUM_KEYS), tables(NUM_KEYS, 80, device, dtype)
    expected, got = (empty(NUM_KEYS, 80, device=device, dtype=dtype) for _ in range(2))
    reference.rotate_scatter_keys(stored, fresh, source, cos, sin, expected)
    rotate_scatter_keys(stored, fresh, source, cos, sin, got)
    assert torch.equal(got.values, expected.values)
    assert largest_error(got.keys, expected.keys) < TOLERANCE[dtype]


@pytest.mark.parametrize("size", [1, 16])
def test_a_paged_cache_gets_its_own_slots_and_no_others(device, size):
    positions = merged_rows("random_rows").to(device)
    stored, fresh = pair(NUM_CONTEXT, 64, 1, device), pair(len(positions), 64, 3, device)
    num_pages = -(-NUM_KEYS // size)
    order = torch.randperm(num_pages + 3, generator=torch.Generator().manual_seed(1))
    pages = Pages(order[None, :num_pages].int().to(device), size)
    expected, got = (empty((num_pages + 3) * size, 64, device=device) for _ in range(2))
    source, (cos, sin) = merge_sources(positions, NUM_KEYS), tables(NUM_KEYS, 64, device)
    reference.rotate_scatter_keys(stored, fresh, source, cos, sin, expected, pages)
    rotate_scatter_keys(stored, fresh, source, cos, sin, got, pages)
    for ours, law in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, law, rtol=0, atol=1e-6, equal_nan=True)
    assert int((~got.values[:, 0, 0].isnan()).sum()) == NUM_KEYS


def test_reference_puts_every_row_where_the_two_steps_would():
    positions = torch.tensor([1, 4, 5])
    stored, fresh = pair(5, 64, 1, "cpu"), pair(3, 64, 3, "cpu")
    cos, sin = tables(6, 64, "cpu")
    cache = empty(6, 64)
    reference.rotate_scatter_keys(stored, fresh, merge_sources(positions, 6), cos, sin, cache)
    raw = torch.cat([stored.keys, torch.zeros(1, 2, 64)]).index_copy(0, positions, fresh.keys)
    turned = torch.empty_like(raw)
    reference.rotate_keys(raw, cos[:, None], sin[:, None], turned)
    assert torch.equal(cache.keys, turned)
    assert torch.equal(cache.values, torch.cat([stored.values, torch.zeros(1, 2, 64)]).index_copy(0, positions, fresh.values))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("dim", [16, 64, 80, 96, 128, 256])
@pytest.mark.parametrize("num_rows", [1, 32, 67])
def test_rotation_alone_equals_reference(device, num_rows, dim, dtype):
    raw = draw(num_rows, 6, dim, seed=0, device=device, dtype=dtype)[:, ::2]
    cos, sin = tables(num_rows, dim, device, dtype)
    expected, got = (empty(num_rows, dim, 3, device, dtype).keys for _ in range(2))
    reference.rotate_keys(raw, cos[:, None], sin[:, None], expected)
    rotate_keys(raw, cos[:, None], sin[:, None], got)
    assert largest_error(got, expected) < TOLERANCE[dtype]
    spread = [table[:, None].expand(-1, 3, -1).contiguous() for table in (cos, sin)]
    again = torch.full_like(got, float("nan"))
    rotate_keys(raw, *spread, again)
    assert torch.equal(got, again)


def test_nothing_to_rotate_is_no_error(device):
    cos, sin = tables(0, 64, device)
    rotate_keys(draw(0, 2, 64, seed=0, device=device), cos[:, None], sin[:, None], draw(0, 2, 64, seed=0, device=device))


def test_what_does_not_fit_together_is_refused(device):
    positions = scattered(5).to(device)
    stored, fresh, cache = pair(NUM_KEYS, 64, 1, device), pair(5, 64, 3, device), empty(NUM_KEYS, 64, device=device)
    source, (cos, sin) = merge_sources(positions, NUM_KEYS), tables(NUM_KEYS, 64, device)

    def merge(stored=stored, fresh=fresh, source=source, cos=cos, sin=sin, cache=cache, pages=None):
        rotate_scatter_keys(stored, fresh, source, cos, sin, cache, pages)

    refused("shares memory", lambda: merge(stored=KeysValues(cache.keys, stored.values)))
    refused("shares memory", lambda: merge(fresh=KeysValues(fresh.keys, cache.values[:5])))
    refused("contiguous, int32", lambda: merge(source=source.long()))
    refused(r"cos is .* it must be \[67, 32\]", lambda: merge(cos=cos[:60]))
    refused("do not fit a cache of 60", lambda: merge(cache=KeysValues(cache.keys[:60], cache.values[:60])))
    refused("the same model's", lambda: merge(fresh=pair(5, 64, 3, device, num_heads=3)))
    refused("as what it is used with", lambda: merge(stored=KeysValues(*(t.half() for t in stored))))
    refused("too few for 67", lambda: merge(pages=Pages(torch.zeros(1, 4, dtype=torch.int32, device=device), 16)))
    refused("shares memory", lambda: rotate_keys(stored.keys, cos[:, None], sin[:, None], stored.keys))
    refused("one shape", lambda: rotate_keys(stored.keys, cos[:, None], sin[:, None], cache.keys[:60]))
    refused("1 or 2", lambda: rotate_keys(stored.keys, cos, sin, cache.keys))
