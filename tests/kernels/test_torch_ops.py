"""Every version of an operation equals the float32 reference, at odd shapes, on outputs full of NaN."""

import pytest
import torch

from kernels import reference
from kernels.linear import Linear
from kernels.onednn import has_onednn
from kernels.ops import load_ops
from kernels.products import Products
from kernels.rows import row_set

# Its name holds what was timed, which may differ between the processes that collect these tests.
OPS = [load_ops("torch")]
TOLERANCE = {torch.float32: dict(rtol=1e-5, atol=1e-5), torch.bfloat16: dict(rtol=2e-2, atol=2e-2)}
ROWS = {
    "one": [0],
    "last": [200],
    "two_ends": [0, 200],
    "prefix": list(range(63)),
    "all": list(range(201)),
    "block_edge": list(range(3, 131)),
    "scattered": sorted({(i * 37) % 201 for i in range(130)}),
}


def draw(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("ops", OPS, ids=["torch"])
@pytest.mark.parametrize("dim", [64, 80, 96, 128, 256])
@pytest.mark.parametrize("rows", [1, 63, 130])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_rotation_equals_reference(ops, dim, rows, dtype):
    raw, angles = draw(rows, 3, dim, dtype=dtype), draw(rows, 1, dim // 2, seed=1)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    expected, got = torch.full_like(raw, float("nan")), torch.full_like(raw, float("nan"))
    reference.rotate_keys(raw, cos, sin, expected)
    ops.rotate_keys(raw, cos, sin, got)
    torch.testing.assert_close(got, expected, **TOLERANCE[dtype])


@pytest.fixture(params=["onednn", "torch alone"])
def products(request, monkeypatch):
    """Runs a test with and without oneDNN's products, which not every build of torch has."""
    if request.param == "onednn" and not has_onednn():
        pytest.skip("this build of torch has no oneDNN products")
    chosen = Products(weights=request.param == "onednn", attention=request.param == "onednn")
    monkeypatch.setattr("kernels.torch_ops.fastest_products", lambda: chosen)
    monkeypatch.setattr("kernels.linear.fastest_products", lambda: chosen)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("ops", OPS, ids=["torch"])
@pytest.mark.parametrize("group", [1, 3, 8])
@pytest.mark.parametrize("dim", [64, 80])
@pytest.mark.parametrize("rows", ROWS)
def test_selected_attention_equals_reference(ops, group, dim, rows):
    positions = torch.tensor(ROWS[rows])
    query, keys, values = draw(len(positions), 2 * group, dim), draw(230, 2, dim, seed=1), draw(230, 2, dim, seed=2)
    blocks = row_set(positions, group, torch.float32)
    # What stands behind the last row belongs to nobody and must never be read.
    keys[int(positions[-1]) + 1 :] = float("nan")
    values[int(positions[-1]) + 1 :] = float("nan")
    end = int(positions[-1]) + 1
    expected = reference.selected_attention(query, keys[:end], values[:end], blocks)
    torch.testing.assert_close(ops.selected_attention(query, keys, values, blocks), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ops", OPS, ids=["torch"])
def test_later_keys_never_change_a_row(ops):
    positions = torch.tensor(ROWS["scattered"])
    query, keys, values = draw(len(positions), 6, 64), draw(201, 2, 64, seed=1), draw(201, 2, 64, seed=2)
    blocks = row_set(positions, 3, torch.float32)
    before = ops.selected_attention(query, keys, values, blocks)
    keys[150:], values[150:] = 7.0, -7.0
    after = ops.selected_attention(query, keys, values, blocks)
    early = positions < 150
    assert torch.equal(before[early], after[early])
    assert not torch.allclose(before[~early], after[~early])


@pytest.mark.parametrize("ops", OPS, ids=["torch"])
@pytest.mark.parametrize("reduction", ["mean", "max"])
def test_scores_equal_a_written_out_softmax(ops, reduction):
    query, keys, positions = draw(5, 6, 64), draw(70, 2, 64, seed=1), torch.arange(64, 69)
    kept = query.clone(), keys.clone()
    rows = []
    for s in range(5):
        for h in range(6):
            logits = torch.tensor([float(query[s, h] @ keys[t, h // 3]) / 8.0 for t in range(int(positions[s]) + 1)])
            rows.append(torch.cat([torch.softmax(logits, 0), torch.zeros(70 - len(logits))]))
    stacked = torch.stack(rows)
    expected = stacked.mean(0) if reduction == "mean" else stacked.amax(0)
    torch.testing.assert_close(ops.token_scores(query, keys, positions, reduction), expected, rtol=1e-4, atol=1e-6)
    assert torch.equal(query, kept[0]) and torch.equal(keys, kept[1])


@pytest.mark.parametrize("ops", OPS, ids=["torch"])
def test_equal_scores_rank_by_position(ops):
    scores = torch.tensor([0.5, 1.0, 0.5, 1.0, 0.5])
    assert ops.rank_tokens(scores).tolist() == [1, 3, 0, 2, 4]


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("rows", [1, 3, 4, 28, 63, 64, 130])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_equals_torch_at_every_row_count(rows, with_bias):
    x, weight, bias = draw(rows, 80), draw(96, 80, seed=1), draw(96, seed=2) if with_bias else None
    torch.testing.assert_close(Linear(weight, bias)(x), torch.nn.functional.linear(x, weight, bias), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("positions", [[], [3, 3], [5, 2]])
def test_rows_out_of_order_are_refused(positions):
    with pytest.raises(ValueError, match="sorted, unique"):
        row_set(torch.tensor(positions, dtype=torch.int64), 1, torch.float32)


@pytest.mark.parametrize("context", [(0, 0), (0, 150), (20, 150)])
def test_plain_weights_make_weighted_attention_the_ordinary_one(context):
    rows = row_set(torch.arange(150, 201), 3, torch.float32)
    query, keys, values = draw(51, 6, 64), draw(201, 2, 64, seed=1), draw(201, 2, 64, seed=2)
    expected = reference.selected_attention(query, keys, values, rows)
    torch.testing.assert_close(reference.weighted_attention(query, keys, values, rows, context, 1.0, 1.0), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "max", "norm", "head"])
def test_reductions_of_scores_are_what_they_say(reduction):
    query, keys, positions = draw(4, 6, 32), draw(50, 2, 32, seed=1), torch.arange(46, 50)
    weights = torch.zeros(6, 4, 50)
    for head in range(6):
        for i, position in enumerate(positions.tolist()):
            logits = torch.stack([query[i, head] @ keys[t, head // 3] for t in range(position + 1)]) / 32**0.5
            weights[head, i, : position + 1] = torch.softmax(logits, 0)
    wanted = {"mean": weights.mean((0, 1)), "max": weights.amax((0, 1)), "norm": weights.mean(0).norm(dim=0), "head": weights.mean(1)}
    torch.testing.assert_close(reference.token_scores(query, keys, positions, reduction), wanted[reduction], rtol=1e-4, atol=1e-6)
