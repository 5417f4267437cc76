"""The law: every operation in plain float32 torch, without cleverness. Other versions must agree with these.

Shapes: R computed rows, T keys, S question tokens, Hq query heads, Hkv KV heads, D head size.
"""

import math

import torch
from torch import Tensor

from kernels.rows import RowSet


def rotate_keys(raw: Tensor, cos: Tensor, sin: Tensor, out: Tensor) -> None:
    """Writes RoPE(raw) to `out`: (x1 cos - x2 sin, x2 cos + x1 sin) with x1, x2 the halves of the head.

    raw, out: [n, H, D], not the same memory; cos, sin: [n, 1 or H, D / 2], spread over the heads by the caller where
    the same tables rotate many layers.
    """
    half = raw.shape[-1] // 2
    first, second = raw[..., :half].float(), raw[..., half:].float()
    c, s = cos.float(), sin.float()
    out.copy_(torch.cat([first * c - second * s, second * c + first * s], dim=-1))


def selected_attention(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet) -> Tensor:
    """Returns softmax(q k / sqrt(D)) v of rows at arbitrary positions, causal by position: [R, Hq, D].

    query: [R, Hq, D]; keys, values: [T, Hkv, D] with T > the last position; query head h uses KV head h // (Hq / Hkv).
    """
    group = query.shape[1] // keys.shape[1]
    k = keys.float().repeat_interleave(group, dim=1)
    v = values.float().repeat_interleave(group, dim=1)
    scores = torch.einsum("rhd,thd->hrt", query.float(), k) / math.sqrt(query.shape[-1])
    future = torch.arange(keys.shape[0], device=keys.device)[None, :] > rows.positions[:, None]
    weights = torch.softmax(scores.masked_fill(future[None], float("-inf")), dim=-1)
    return torch.einsum("hrt,thd->rhd", weights, v).to(query.dtype)


def token_scores(query: Tensor, keys: Tensor, positions: Tensor, reduction: str = "mean") -> Tensor:
    """Returns the attention every key receives from the question, reduced over question tokens and heads: float32 [T].

    query: [S, Hq, D]; keys: [T, Hkv, D]; positions: int64 [S], index of each question token among the keys; the
    softmax runs over all keys up to it (arXiv 2604.08585, 3.2). reduction: "mean" or "max". Never changes its inputs.
    """
    group = query.shape[1] // keys.shape[1]
    k = keys.float().repeat_interleave(group, dim=1)
    scores = torch.einsum("shd,thd->hst", query.float(), k) / math.sqrt(query.shape[-1])
    future = torch.arange(keys.shape[0], device=keys.device)[None, :] > positions[:, None]
    weights = torch.softmax(scores.masked_fill(future[None], float("-inf")), dim=-1)
    return weights.mean(dim=(0, 1)) if reduction == "mean" else weights.amax(dim=(0, 1))


def rank_tokens(scores: Tensor) -> Tensor:
    """Returns int64 [N], indices by score descending; equal scores keep the order of their positions."""
    return torch.sort(scores, descending=True, stable=True).indices
