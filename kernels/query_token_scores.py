"""The attention that every key receives from the question, in Triton, without the attention matrix in memory.

The law is `kernels.reference.token_scores`. Two passes over the keys: the first finds the log-sum-exp of each question token and
head, its keys split among programs; the second recomputes the weights of one block of keys at a time and reduces them where
they are. What reaches memory is one number a key and KV head. Inputs are only read.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.checks import check_group, check_heads, check_vector
from kernels.device_code import LN_2, LOG2_E, capability, dot_type, load_rows, num_processors
from kernels.tiles import INTERPRETED, Tile, choose_splits, padded_head, score_tile

REDUCTIONS = ("mean", "max", "head", "norm")


def query_token_scores(
    query: Tensor, keys: Tensor, positions: Tensor, reduction: str = "mean", tile: Tile | None = None, num_splits: int | None = None
) -> Tensor:
    """Returns float32 [T], or [Hq, T] of reduction "head"; arguments as of the reference, which it agrees with.

    Args:
        tile: cut of the work, that of the architecture unless given.
        num_splits: programs that share the keys in the first pass, as many as keep the GPU busy unless given.

    Raises ValueError where shapes, strides or types do not fit together.
    """
    check_heads("The query", query)
    check_heads("The keys", keys, like=query)
    group = check_group(query, keys)
    check_vector("The positions of the question", positions, (torch.int64, torch.int32), query.device, query.shape[0])
    if reduction not in REDUCTIONS:
        raise ValueError(f"The reduction is {reduction!r}; it must be one of {', '.join(REDUCTIONS)}.")
    if not query.shape[0] or not keys.shape[0]:
        raise ValueError(f"{query.shape[0]} question tokens look at {keys.shape[0]} keys; there must be at least one of each.")
    (num_tokens, num_heads, dim), num_keys = query.shape, keys.shape[0]
    own = capability(query.device)
    tile = tile or (INTERPRETED if own is None else score_tile(own, dim, query.element_size()))
    key_blocks, strides = triton.cdiv(num_keys, tile.keys), (*query.stride()[:2], *keys.stride()[:2])
    shape = {"HEAD": dim, "BLOCK_D": padded_head(dim), "BLOCK_M": tile.rows, "BLOCK_N": tile.keys, "DOT": dot_type(query.dtype)}
    options = {**shape, "num_warps": tile.num_warps, "num_stages": tile.num_stages}

    row_blocks = triton.cdiv(num_tokens * group, tile.rows)
    splits = num_splits or choose_splits(row_blocks * keys.shape[1], key_blocks, num_processors(query.device))
    part_lse = torch.empty(splits, num_heads, num_tokens, dtype=torch.float32, device=query.device)
    lse_kernel[(row_blocks, keys.shape[1], splits)](
        query, keys, positions, part_lse, dim**-0.5, num_tokens, num_keys, *strides, GROUP=group, **options
    )
    lse = part_lse[0] if splits == 1 else torch.logsumexp(part_lse, dim=0)

    if reduction == "norm":
        parts = torch.empty(triton.cdiv(num_tokens, tile.rows), num_keys, dtype=torch.float32, device=query.device)
        norm_kernel[(key_blocks, parts.shape[0])](
            query, keys, positions, lse, parts, dim**-0.5, num_tokens, num_keys, *strides, NUM_HEADS=num_heads, GROUP=group, **options
        )
        return parts.sum(0).sqrt_().div_(num_heads)
    heads = 1 if reduction == "head" else group
    parts = torch.empty(num_heads // heads, num_keys, dtype=torch.float32, device=query.device)
    sum_kernel[(key_blocks, parts.shape[0])](
        query,
        keys,
        positions,
        lse,
        parts,
        dim**-0.5,
        num_tokens,
        num_keys,
        *strides,
        HEADS=heads,
        GROUP=group,
        IS_MAX=reduction == "max",
        **options,
    )
    if reduction == "max":
        return parts.amax(0)
    return parts.div_(num_tokens) if reduction == "head" else parts.sum(0).div_(num_tokens * num_heads)


@triton.jit(do_not_specialize=["num_tokens", "num_keys"])
def lse_kernel(
    query,
    keys,
    positions,
    part_lse,
    scale,
    num_tokens,
    num_keys,
    stride_query_row,
    stride_query_head,
    stride_key_row,
    stride_key_head,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DOT: tl.constexpr,
):
    """log sum_t exp(q k_t / sqrt(D)) of one block of question tokens and heads of a group, over one share of the keys they see."""
    head, split = tl.program_id(1), tl.program_id(2)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    token = m // GROUP
    query_head = head * GROUP + m % GROUP
    is_row = token < num_tokens
    position = tl.load(positions + token, mask=is_row, other=0).to(tl.int32)
    end = tl.minimum(tl.max(position, 0) + 1, num_keys)
    q = load_rows(query + query_head[:, None] * stride_query_head, token, stride_query_row, is_row, d, HEAD, False).to(DOT)
    share = tl.cdiv(tl.cdiv(end, BLOCK_N), tl.num_programs(2))
    stop = tl.minimum((split + 1) * share, tl.cdiv(end, BLOCK_N))
    top = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    for i in tl.range(split * share, stop):
        t = i * BLOCK_N + tl.arange(0, BLOCK_N)
        k = load_rows(keys + head * stride_key_head, t, stride_key_row, t < end, d, HEAD, False).to(DOT)
        s = tl.dot(q, tl.trans(k), input_precision="tf32x3") * (scale * LOG2_E)
        s = tl.where((t[None, :] <= position[:, None]) & (t < end)[None, :], s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        # Where nothing was visible so far both are -inf, whose difference is not a number.
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        total = total * tl.exp2(top - base) + tl.sum(tl.exp2(s - base[:, None]), 1)
        top = new_top
    total = tl.where(total > 0.0, total, 1.0)
    at = (split * tl.num_programs(1) * GROUP + query_head) * num_tokens + token
    tl.store(part_lse + at, (top + tl.log2(total)) * LN_2, mask=is_row)


@triton.jit
def _weights(q, k, lse, scale, position, is_row, t, num_keys):
    """Returns softmax weights [M, N] of a block, zero where a key lies behind its row or either is not there."""
    s = tl.dot(q, tl.trans(k), input_precision="tf32x3") * (scale * LOG2_E)
    is_visible = (t[None, :] <= position[:, None]) & (t < num_keys)[None, :] & is_row[:, None]
    return tl.where(is_visible, tl.exp2(tl.where(is_visible, s - (lse * LOG2_E)[:, None], 0.0)), 0.0)


@triton.jit(do_not_specialize=["num_tokens", "num_keys"])
def sum_kernel(
    query,
    keys,
    positions,
    lse,
    parts,
    scale,
    num_tokens,
    num_keys,
    stride_query_row,
    stride_query_head,
    stride_key_row,
    stride_key_head,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    IS_MAX: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DOT: tl.constexpr,
):
    """Sum, or largest, of the weights of one block of keys over all question tokens and HEADS query heads of one KV head."""
    part = tl.program_id(1)
    kv_head = part * HEADS // GROUP
    t = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    k = load_rows(keys + kv_head * stride_key_head, t, stride_key_row, t < num_keys, d, HEAD, False).to(DOT)
    acc = tl.zeros([BLOCK_N], dtype=tl.float32)
    for block in tl.range(tl.cdiv(num_tokens * HEADS, BLOCK_M)):
        m = block * BLOCK_M + tl.arange(0, BLOCK_M)
        token = m // HEADS
        query_head = part * HEADS + m % HEADS
        is_row = token < num_tokens
        position = tl.load(positions + token, mask=is_row, other=0).to(tl.int32)
        row_lse = tl.load(lse + query_head * num_tokens + token, mask=is_row, other=0.0)
        q = load_rows(query + query_head[:, None] * stride_query_head, token, stride_query_row, is_row, d, HEAD, False).to(DOT)
        p = _weights(q, k, row_lse, scale, position, is_row, t, num_keys)
        acc = tl.maximum(acc, tl.max(p, 0)) if IS_MAX else acc + tl.sum(p, 0)
    tl.store(parts + part.to(tl.int64) * num_keys + t, acc, mask=t < num_keys)


@triton.jit(do_not_specialize=["num_tokens", "num_keys"])
def norm_kernel(
    query,
    keys,
    positions,
    lse,
    parts,
    scale,
    num_tokens,
    num_keys,
    stride_query_row,
    stride_query_head,
    stride_key_row,
    stride_key_head,
    NUM_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DOT: tl.constexpr,
):
    """Sum over one block of question tokens of the squares of the weights' sums over all heads, for one block of keys."""
    t = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    token = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    is_row = token < num_tokens
    position = tl.load(positions + token, mask=is_row, other=0).to(tl.int32)
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for head in tl.range(NUM_HEADS):
        k = load_rows(keys + head // GROUP * stride_key_head, t, stride_key_row, t < num_keys, d, HEAD, False).to(DOT)
        q = load_rows(query + head * stride_query_head, token, stride_query_row, is_row, d, HEAD, False).to(DOT)
        row_lse = tl.load(lse + head * num_tokens + token, mask=is_row, other=0.0)
        acc += _weights(q, k, row_lse, scale, position, is_row, t, num_keys)
    tl.store(parts + tl.program_id(1).to(tl.int64) * num_keys + t, tl.sum(acc * acc, 0), mask=t < num_keys)
