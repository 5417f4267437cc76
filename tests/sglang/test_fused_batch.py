"""Attention of a batch of fused and ordinary requests over scattered pool slots: both ways of computing it against plain steps."""

from types import SimpleNamespace

import pytest
import torch

from engine.model.decoder import Decoder
from engine.model.tiny import tiny_model
from engine.serving.sglang.fused_batch import fused_batch
from kernels.ops import load_ops

LENGTHS, PREFIXES = (37, 20, 29), (0, 8, 3)


def plainly(query, keys, values, positions, slots):
    """Returns softmax attention of rows [R, Hq, D] over a request's keys, row by row."""
    group, out = query.shape[1] // keys.shape[1], []
    for row, position in zip(query, positions.tolist(), strict=True):
        k, v = (pool[slots[: position + 1]].repeat_interleave(group, dim=1) for pool in (keys, values))
        weights = torch.softmax(torch.einsum("hd,thd->ht", row, k) / row.shape[-1] ** 0.5, dim=-1)
        out.append(torch.einsum("ht,thd->hd", weights, v))
    return torch.stack(out)


@pytest.mark.parametrize("kernels, paged", [("torch", False), ("reference", True), ("triton", True)])
def test_every_row_sees_its_own_request_up_to_itself(kernels, paged):
    model = tiny_model("qwen3")
    spec, decoder = model.spec, Decoder(model, load_ops(kernels))
    generator = torch.Generator().manual_seed(1)
    order = torch.randperm(200, generator=generator)
    slots = [order[sum(LENGTHS[:i]) : sum(LENGTHS[: i + 1])] for i in range(3)]
    chosen = torch.tensor([3, 4, 11, 17, 30, 31, 32, 36])
    jobs = [SimpleNamespace(rows=chosen), None, None]
    batch = fused_batch(decoder, jobs, list(zip(PREFIXES, LENGTHS, strict=True)), slots, paged)
    keys, values = (torch.full((200, spec.num_kv_heads, spec.head_dim), float("nan")) for _ in range(2))
    for own in slots:
        for pool in (keys, values):
            pool[own] = torch.randn(len(own), spec.num_kv_heads, spec.head_dim, generator=generator)
    query = torch.randn(len(batch.keep), spec.num_heads, spec.head_dim, generator=generator)
    positions = [chosen, *(torch.arange(*span) for span in list(zip(PREFIXES, LENGTHS, strict=True))[1:])]
    parts = torch.split(query, [len(p) for p in positions])
    wanted = torch.cat([plainly(part, keys, values, p, own) for part, p, own in zip(parts, positions, slots, strict=True)])
    torch.testing.assert_close(batch.attention(query, keys, values), wanted, rtol=1e-4, atol=1e-5)
    assert batch.keep.tolist() == [*chosen.tolist(), *range(37, 37 + 12), *range(49, 49 + 26)]
