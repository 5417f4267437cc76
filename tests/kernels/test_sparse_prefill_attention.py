"""Attention of scattered rows equals the float32 reference: every head size and group, batches, pages, windows, splits."""

import pytest
import torch
from kernel_samples import NUM_KEYS, ROWS, TOLERANCE, draw, largest_error, refused, scattered

from kernels import reference
from kernels.batch import Pages, row_batch
from kernels.sparse_prefill_attention import sparse_prefill_attention
from kernels.tiles import Tile, choose_splits

SMALL = Tile(16, 16, 4, 1)


def sample(device, num_rows, group=3, dim=64, num_kv_heads=2, num_slots=NUM_KEYS, dtype=torch.float32):
    query = draw(num_rows, num_kv_heads * group, dim, seed=1, device=device, dtype=dtype)
    keys, values = (draw(num_slots, num_kv_heads, dim, seed=seed, device=device, dtype=dtype) for seed in (2, 3))
    return query, keys, values


def assert_equals_reference(query, keys, values, rows, window=None, sinks=0, **options):
    expected = reference.sparse_prefill_attention(query, keys, values, rows, window, sinks)
    got = sparse_prefill_attention(query, keys, values, rows, window, sinks, **options)
    assert got.out.dtype == query.dtype and got.lse.dtype == torch.float32
    assert largest_error(got.out, expected[0]) < TOLERANCE[query.dtype]
    assert largest_error(got.lse, expected[1]) < TOLERANCE[query.dtype]


@pytest.mark.parametrize("group", [1, 3, 4, 8])
@pytest.mark.parametrize("dim", [64, 80, 96, 128, 256])
@pytest.mark.parametrize("name", ROWS)
def test_attention_equals_reference(device, name, dim, group):
    positions = ROWS[name]
    assert_equals_reference(*sample(device, len(positions), group, dim), row_batch([positions], device))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_narrow_types_stay_within_their_rounding(device, dtype):
    positions = ROWS["random_rows"]
    assert_equals_reference(*sample(device, len(positions), dtype=dtype), row_batch([positions], device))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("window", "sinks"), [(1, 0), (20, 0), (20, 3), (33, 40), (40, NUM_KEYS), (2 * NUM_KEYS, 5)])
def test_window_and_sinks_equal_reference(device, name, window, sinks):
    positions = ROWS[name]
    assert_equals_reference(*sample(device, len(positions)), row_batch([positions], device), window, sinks)


def test_tiles_change_nothing(device):
    positions = scattered(21)
    for tile in (SMALL, Tile(32, 16, 4, 1), Tile(16, 64, 4, 1)):
        for window in (None, 30):
            assert_equals_reference(*sample(device, 21), row_batch([positions], device), window, 2, tile=tile)


def pages_of(num_keys, size, device, seed=0):
    """Returns pages of requests in a shuffled cache, unused entries pointing at the last page, and the number of slots."""
    counts = [-(-n // size) for n in num_keys]
    order = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(seed)).int()
    table = torch.full((len(counts), max(counts) + 1), sum(counts), dtype=torch.int32)
    for b, part in enumerate(order.split(counts)):
        table[b, : counts[b]] = part
    return Pages(table.to(device), size), (sum(counts) + 1) * size


BATCH = [ROWS["random_rows"], torch.tensor([70]), torch.arange(35), torch.tensor([0, 1, 2, 63, 64])]


@pytest.mark.parametrize(
    ("layout", "window", "sinks", "num_splits"),
    [
        ("contiguous", None, 0, 1),
        ("contiguous", 20, 3, 2),
        ("page_1", None, 0, 2),
        ("page_16", None, 0, 1),
        ("page_16", 20, 3, 1),
    ],
)
def test_an_unequal_batch_equals_each_request_alone(device, layout, window, sinks, num_splits):
    num_keys = [int(p[-1]) + 1 for p in BATCH]
    if layout == "contiguous":
        starts = [0, 100, 180, 240]
        rows, num_slots = row_batch(BATCH, device, starts), 320
    else:
        pages, num_slots = pages_of(num_keys, int(layout.removeprefix("page_")), device)
        rows = row_batch(BATCH, device, pages=pages)
    query, keys, values = sample(device, sum(len(p) for p in BATCH), num_slots=num_slots)
    unused = torch.ones(num_slots, dtype=torch.bool, device=device)
    for b in range(len(BATCH)):
        unused[rows.slots(b)] = False
    # What no request owns must never be read, nor one's keys for another.
    keys[unused], values[unused] = float("nan"), float("nan")
    assert_equals_reference(query, keys, values, rows, window, sinks, num_splits=num_splits)
    together = sparse_prefill_attention(query, keys, values, rows, window, sinks, num_splits=num_splits)
    for b, (start, stop) in enumerate(rows.row_spans()):
        slots = rows.slots(b)
        alone = row_batch([BATCH[b]], device)
        got = sparse_prefill_attention(query[start:stop], keys[slots], values[slots], alone, window, sinks, num_splits=num_splits)
        assert largest_error(got.out, together.out[start:stop]) < 1e-6 and largest_error(got.lse, together.lse[start:stop]) < 1e-6


@pytest.mark.parametrize("num_splits", [1, 2])
@pytest.mark.parametrize("window", [None, 30])
def test_later_keys_never_change_a_row(device, window, num_splits):
    positions = ROWS["random_rows"]
    query, keys, values = sample(device, len(positions))
    rows = row_batch([positions], device)
    before = sparse_prefill_attention(query, keys, values, rows, window, num_splits=num_splits)
    for i in (0, 5, len(positions) - 1):
        changed = keys.clone(), values.clone()
        for tensor in changed:
            tensor[positions[i] + 1 :] = 1e3
        after = sparse_prefill_attention(query, *changed, rows, window, num_splits=num_splits)
        assert torch.equal(before.out[: i + 1], after.out[: i + 1]) and torch.equal(before.lse[: i + 1], after.lse[: i + 1])
        assert i + 1 == len(positions) or not torch.allclose(before.out[i + 1 :], after.out[i + 1 :])


def test_a_row_outside_its_window_is_not_read(device):
    positions = torch.tensor([90, 93, 100])
    query, keys, values = sample(device, 3, num_slots=101)
    # Blocks between the sinks and the window of the first row.
    keys[32:64], values[32:64] = float("nan"), float("nan")
    got = sparse_prefill_attention(query, keys, values, row_batch([positions], device), 20, 4)
    assert not got.out.isnan().any() and not got.lse.isnan().any()


def test_inputs_may_be_strided_and_stay_as_they_are(device):
    positions = ROWS["random_rows"]
    query = draw(6, len(positions), 64, seed=1, device=device).transpose(0, 1)
    keys = draw(2, NUM_KEYS, 64, seed=2, device=device).transpose(0, 1)
    values = draw(NUM_KEYS, 2, 128, seed=3, device=device)[..., 64:]
    kept = [t.clone() for t in (query, keys, values)]
    assert_equals_reference(query, keys, values, row_batch([positions], device), num_splits=2)
    assert all(torch.equal(a, b) for a, b in zip(kept, (query, keys, values), strict=True))


def test_extreme_scores_do_not_overflow(device):
    positions = ROWS["random_rows"]
    query, keys, values = sample(device, len(positions))
    # Without the largest score taken off first, the sum of exponentials would be infinite in float32.
    expected = reference.sparse_prefill_attention(query * 40, keys, values, row_batch([positions], device))
    got = sparse_prefill_attention(query * 40, keys, values, row_batch([positions], device), num_splits=3)
    assert expected[1].max() > 100 and largest_error(got.out, expected[0]) < 2e-3
    torch.testing.assert_close(got.lse, expected[1], rtol=1e-5, atol=0)


def test_the_reference_equals_a_written_out_softmax():
    positions, window, sinks = torch.tensor([2, 5, 9]), 3, 2
    query, keys, values = sample("cpu", 3, num_slots=10, dim=16)
    out, lse = reference.sparse_prefill_attention(query, keys, values, row_batch([positions], "cpu"), window, sinks)
    for row, position in enumerate(positions.tolist()):
        seen = sorted({*range(sinks), *range(position - window + 1, position + 1)})
        for head in range(6):
            logits = torch.stack([query[row, head] @ keys[t, head // 3] for t in seen]) / 4.0
            assert torch.isclose(lse[row, head], logits.exp().sum().log(), atol=1e-5)
            wanted = sum(w * values[t, head // 3] for w, t in zip(logits.softmax(0), seen, strict=True))
            torch.testing.assert_close(out[row, head], wanted, rtol=1e-5, atol=1e-5)


def test_few_rows_share_their_keys_among_processors():
    assert choose_splits(programs=8, key_blocks=128, processors=132) == 16
    assert choose_splits(programs=8, key_blocks=8, processors=132) == 2
    assert choose_splits(programs=500, key_blocks=128, processors=132) == 1
    assert choose_splits(programs=1, key_blocks=1000, processors=132) == 32


def test_what_does_not_fit_together_is_refused(device):
    positions = torch.tensor([3, 60])
    rows = row_batch([positions], device)
    query, keys, values = sample(device, 2)
    refused("side by side", lambda: sparse_prefill_attention(query.transpose(1, 2), keys, values, rows))
    refused("must be float32, float16 or bfloat16", lambda: sparse_prefill_attention(query.double(), keys, values, rows))
    refused("as what it is used with", lambda: sparse_prefill_attention(query, keys.half(), values, rows))
    refused("must have one shape", lambda: sparse_prefill_attention(query, keys, values[:63], rows))
    refused("do not divide", lambda: sparse_prefill_attention(query[:, :5], keys, values, rows))
    refused("it must have 3", lambda: sparse_prefill_attention(draw(3, 6, 64, seed=0, device=device), keys, values, rows))
    refused("look at 61 keys and there are 60", lambda: sparse_prefill_attention(query, keys[:60], values[:60], rows))
    later = row_batch([positions], device, [7])
    refused("look at 68 keys and there are 67", lambda: sparse_prefill_attention(query, keys, values, later))
    refused("at least 1 key", lambda: sparse_prefill_attention(query, keys, values, rows, window=0))
    refused("sinks is -1", lambda: sparse_prefill_attention(query, keys, values, rows, sinks=-1))
    refused("heads of 8 values", lambda: sparse_prefill_attention(query[..., :8], keys[..., :8], values[..., :8], rows))


def test_batches_that_cannot_be_are_refused():
    good = torch.tensor([0, 4])
    refused("sorted, unique", lambda: row_batch([torch.tensor([4, 4])], "cpu"))
    refused("request 1 must", lambda: row_batch([good, torch.tensor([], dtype=torch.int64)], "cpu", [0, 5]))
    refused("no request", lambda: row_batch([], "cpu"))
    refused("share one K and V", lambda: row_batch([good, good], "cpu"))
    refused("one row of at least 0 for each of 2", lambda: row_batch([good, good], "cpu", [0]))
    refused("too few for 5 keys", lambda: row_batch([good], "cpu", pages=Pages(torch.zeros(1, 1, dtype=torch.int32), 4)))
    refused(r"int32 \[1, pages\]", lambda: row_batch([good], "cpu", pages=Pages(torch.zeros(2, 8, dtype=torch.int32), 4)))
