"""The law: every operation in plain float32 torch, without cleverness. Other versions must agree with these.

Shapes: R computed rows, T keys, S question tokens, Hq query heads, Hkv KV heads, D head size, N scores.
"""

import math

import torch
from torch import Tensor

from kernels.batch import KeysValues, Pages, RowBatch
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
    keys, values = keys[: int(rows.positions[-1]) + 1], values[: int(rows.positions[-1]) + 1]
    k = keys.float().repeat_interleave(group, dim=1)
    v = values.float().repeat_interleave(group, dim=1)
    scores = torch.einsum("rhd,thd->hrt", query.float(), k) / math.sqrt(query.shape[-1])
    future = torch.arange(keys.shape[0], device=keys.device)[None, :] > rows.positions[:, None]
    weights = torch.softmax(scores.masked_fill(future[None], float("-inf")), dim=-1)
    return torch.einsum("hrt,thd->rhd", weights, v).to(query.dtype)


def weighted_attention(
    query: Tensor, keys: Tensor, values: Tensor, rows: RowSet, context: tuple[int, int], temperature: float, scale: float
) -> Tensor:
    """Returns attention in which keys [start, stop) of the context count differently from the others: [R, Hq, D].

    Context scores are divided by the temperature; context and other keys are softmaxed apart, and the two results weighed
    by a softmax over (scale x the context's log-sum-exp, the others' log-sum-exp) (arXiv 2502.05431, 4.2). Shapes as in
    `selected_attention`; every row must see at least one key outside the context.
    """
    group, start, stop = query.shape[1] // keys.shape[1], *context
    # What lies behind the last row is not part of the request and may hold anything.
    keys, values = keys[: int(rows.positions[-1]) + 1], values[: int(rows.positions[-1]) + 1]
    k = keys.float().repeat_interleave(group, dim=1)
    v = values.float().repeat_interleave(group, dim=1)
    scores = torch.einsum("rhd,thd->hrt", query.float(), k) / math.sqrt(query.shape[-1])
    index = torch.arange(keys.shape[0], device=keys.device)
    scores = scores.masked_fill((index[None, :] > rows.positions[:, None])[None], float("-inf"))
    inside = (index >= start) & (index < stop)
    parts, weights = [], []
    for chosen, warmth, factor in ((inside, temperature, scale), (~inside, 1.0, 1.0)):
        part = scores[..., chosen] / warmth
        weights.append(torch.logsumexp(part, dim=-1) * factor)
        parts.append(torch.einsum("hrt,thd->rhd", torch.softmax(part, dim=-1).nan_to_num(0.0), v[chosen]))
    share = torch.softmax(torch.stack(weights), dim=0).transpose(1, 2)[..., None]
    return (share[0] * parts[0] + share[1] * parts[1]).to(query.dtype)


def token_scores(query: Tensor, keys: Tensor, positions: Tensor, reduction: str = "mean") -> Tensor:
    """Returns the attention every key receives from the question: float32 [T], or [Hq, T] of reduction "head".

    query: [S, Hq, D]; keys: [T, Hkv, D]; positions: int64 [S], index of each question token among the keys; the
    softmax runs over all keys up to it (arXiv 2604.08585, 3.2). Never changes its inputs.

    Args:
        reduction: over question tokens and heads "mean" or "max"; "head", the mean over question tokens alone; "norm", the
            L2 norm over question tokens of the mean over heads.
    """
    group = query.shape[1] // keys.shape[1]
    k = keys.float().repeat_interleave(group, dim=1)
    scores = torch.einsum("shd,thd->hst", query.float(), k) / math.sqrt(query.shape[-1])
    future = torch.arange(keys.shape[0], device=keys.device)[None, :] > positions[:, None]
    weights = torch.softmax(scores.masked_fill(future[None], float("-inf")), dim=-1)
    return _REDUCTIONS[reduction](weights)


_REDUCTIONS = {
    "mean": lambda weights: weights.mean(dim=(0, 1)),
    "max": lambda weights: weights.amax(dim=(0, 1)),
    "head": lambda weights: weights.mean(dim=1),
    "norm": lambda weights: torch.linalg.vector_norm(weights.mean(dim=0), dim=0),
}


def rank_tokens(scores: Tensor) -> Tensor:
    """Returns int64 [N], indices by score descending; equal scores keep the order of their positions."""
    return torch.sort(scores, descending=True, stable=True).indices


def topk_select(scores: Tensor, count: int) -> Tensor:
    """Returns int64 [count], ascending: the indices of the highest of N scores, of equal ones those that come first."""
    return rank_tokens(scores)[:count].sort().values


def sparse_prefill_attention(
    query: Tensor, keys: Tensor, values: Tensor, rows: RowBatch, window: int | None = None, sinks: int = 0
) -> tuple[Tensor, Tensor]:
    """Returns `selected_attention` of a batch of requests, [R, Hq, D], and its log-sum-exp, float32 [R, Hq].

    query: [R, Hq, D]; keys, values: [slots, Hkv, D], in which `rows` says where each request's keys are.

    Args:
        window: a row sees only this many keys, its own the last of them; None for all.
        sinks: keys of every request, its first ones, that rows see beyond the window.
    """
    out = torch.empty_like(query)
    lse = torch.empty(query.shape[:2], dtype=torch.float32, device=query.device)
    group = query.shape[1] // keys.shape[1]
    for request, (start, stop) in enumerate(rows.row_spans()):
        slots = rows.slots(request)
        k = keys[slots].float().repeat_interleave(group, dim=1)
        v = values[slots].float().repeat_interleave(group, dim=1)
        index, position = torch.arange(slots.shape[0], device=keys.device)[None, :], rows.positions[start:stop, None]
        hidden = index > position
        if window is not None:
            hidden |= (position - index >= window) & (index >= sinks)
        scores = torch.einsum("rhd,thd->hrt", query[start:stop].float(), k) / math.sqrt(query.shape[-1])
        scores.masked_fill_(hidden[None], float("-inf"))
        lse[start:stop] = torch.logsumexp(scores, dim=-1).T
        out[start:stop] = torch.einsum("hrt,thd->rhd", torch.softmax(scores, dim=-1), v)
    return out, lse


def rotate_scatter_keys(
    stored: KeysValues, fresh: KeysValues, source: Tensor, cos: Tensor, sin: Tensor, cache: KeysValues, pages: Pages | None = None
) -> None:
    """Writes a layer of one request to its cache: keys rotated, values as they are, fresh rows in the place of stored ones.

    Args:
        stored: [n, Hkv, D] each, position t in row t, keys not rotated; n may be less than T. Rows with a fresh one are not read.
        fresh: [R, Hkv, D] each, keys not rotated.
        source: int32 [T], for every position the row of `fresh` to take, or -1 for the stored one.
        cos, sin: [T, D / 2], as of `rotate_keys`.
        cache: [slots, Hkv, D] each; position t goes to slot t, or where `pages` (of one request) has it.
    """
    at = torch.arange(source.shape[0], device=source.device)
    slots = at if pages is None else pages.table[0].long()[at // pages.size] * pages.size + at % pages.size
    is_fresh = source >= 0
    merged = []
    for old, new in zip(stored, fresh, strict=True):
        rows = torch.empty(source.shape[0], *new.shape[1:], dtype=new.dtype, device=new.device)
        rows[~is_fresh] = old[at[~is_fresh]]
        rows[is_fresh] = new[source[is_fresh].long()]
        merged.append(rows)
    rotated = torch.empty_like(merged[0])
    rotate_keys(merged[0], cos[:, None, :], sin[:, None, :], rotated)
    cache.keys[slots] = rotated
    cache.values[slots] = merged[1]
