"""Attention of rows at arbitrary sorted positions over contiguous or paged K and V, in Triton.

The law is `kernels.reference.sparse_prefill_attention`. The query heads of a group are stacked as rows of one KV head, so K
and V are read once for all of them. No mask exists in memory: a block compares positions, leaves keys that all its rows
see unmasked, and stops at its last position. Blocks with the most keys start first.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.batch import RowBatch
from kernels.checks import check_group, check_heads, check_pair, check_vector
from kernels.device_code import LN_2, LOG2_E, capability, dot_type, find_slots, load_rows, num_processors
from kernels.tiles import INTERPRETED, Tile, attention_tile, choose_splits, padded_head


class AttentionOutput(NamedTuple):
    """out: [R, Hq, D] in the type of the query; lse: float32 [R, Hq], log of the sum of exp(q k / sqrt(D)) over visible keys."""

    out: Tensor
    lse: Tensor


def sparse_prefill_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    rows: RowBatch,
    window: int | None = None,
    sinks: int = 0,
    tile: Tile | None = None,
    num_splits: int | None = None,
) -> AttentionOutput:
    """Returns softmax(q k / sqrt(D)) v and its log-sum-exp; arguments as of the reference, which it agrees with.

    Args:
        tile: cut of the work, that of the architecture unless given.
        num_splits: programs that share the keys of a block of rows, as many as keep the GPU busy unless given.

    Raises ValueError where shapes, strides or types do not fit together.
    """
    group = _check(query, keys, values, rows, window, sinks)
    num_kv_heads, dim = keys.shape[1:]
    own = capability(query.device)
    tile = tile or (INTERPRETED if own is None else attention_tile(own, dim, query.element_size()))
    num_blocks = triton.cdiv(max(rows.num_rows) * group, tile.rows)
    programs = num_blocks * num_kv_heads * len(rows.num_rows)
    splits = num_splits or choose_splits(programs, triton.cdiv(max(rows.num_keys), tile.keys), num_processors(query.device))
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    lse = torch.empty(query.shape[:2], dtype=torch.float32, device=query.device)
    parts, part_lse = (out[None], lse[None])
    if splits > 1:
        parts = torch.empty(splits, *query.shape, dtype=torch.float32, device=query.device)
        part_lse = torch.empty(splits, *query.shape[:2], dtype=torch.float32, device=query.device)
    table = None if rows.pages is None else rows.pages.table
    attend_kernel[(num_blocks * splits, num_kv_heads, len(rows.num_rows))](
        query,
        keys,
        values,
        parts,
        part_lse,
        rows.positions,
        rows.row_starts,
        rows.key_starts,
        table,
        dim**-0.5,
        query.shape[0],
        splits,
        window or 0,
        sinks,
        query.stride(0),
        query.stride(1),
        keys.stride(0),
        keys.stride(1),
        values.stride(0),
        values.stride(1),
        0 if table is None else table.stride(0),
        GROUP=group,
        HEAD=dim,
        BLOCK_D=padded_head(dim),
        BLOCK_M=tile.rows,
        BLOCK_N=tile.keys,
        PAGE_SIZE=0 if rows.pages is None else rows.pages.size,
        IS_WINDOWED=window is not None,
        DOT=dot_type(query.dtype),
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
    )
    if splits > 1:
        _combine(parts, part_lse, out, lse)
    return AttentionOutput(out, lse)


def _check(query: Tensor, keys: Tensor, values: Tensor, rows: RowBatch, window: int | None, sinks: int) -> int:
    """Returns the query heads per KV head."""
    check_heads("The query", query)
    check_pair("the cache", keys, values, like=query)
    check_vector("The row positions", rows.positions, (torch.int64, torch.int32), query.device, query.shape[0])
    if sum(rows.num_rows) != query.shape[0]:
        raise ValueError(f"The batch has {sum(rows.num_rows)} rows and the query {query.shape[0]}; give one query row for each.")
    if rows.num_slots > keys.shape[0]:
        raise ValueError(f"The rows look at {rows.num_slots} keys and there are {keys.shape[0]}; give keys up to every row.")
    if window is not None and window < 1:
        raise ValueError(f"The window is {window}; it must be at least 1 key, or None for all.")
    if sinks < 0:
        raise ValueError(f"The number of sinks is {sinks}; it must be at least 0.")
    return check_group(query, keys)


@triton.jit(do_not_specialize=["num_rows", "num_splits", "window", "sinks"])
def attend_kernel(
    query,
    keys,
    values,
    parts,
    part_lse,
    positions,
    row_starts,
    key_starts,
    page_table,
    scale,
    num_rows,
    num_splits,
    window,
    sinks,
    stride_query_row,
    stride_query_head,
    stride_key_row,
    stride_key_head,
    stride_value_row,
    stride_value_head,
    stride_table,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    IS_WINDOWED: tl.constexpr,
    DOT: tl.constexpr,
):
    """One block of stacked rows of one KV head of one request, over one share of its keys. num_rows: of all requests."""
    head, request = tl.program_id(1), tl.program_id(2)
    first_row = 0
    stop_row = num_rows
    if row_starts is not None:
        first_row = tl.load(row_starts + request)
        stop_row = tl.load(row_starts + request + 1)
    if key_starts is not None:
        first_key = tl.load(key_starts + request).to(tl.int64)
        keys += first_key * stride_key_row
        values += first_key * stride_value_row
    stacked = (stop_row - first_row) * GROUP
    block = tl.cdiv(stacked, BLOCK_M) - 1 - tl.program_id(0) // num_splits
    split = tl.program_id(0) % num_splits
    if block < 0:
        return
    m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    is_row = m < stacked
    row = first_row + m // GROUP
    query_head = head * GROUP + m % GROUP
    # Stacked rows beyond the last stand where it does, and so change neither the first nor the last position.
    position = tl.load(positions + tl.minimum(row, stop_row - 1)).to(tl.int32)
    first = tl.min(position, 0)
    end = tl.max(position, 0) + 1
    q = load_rows(query + query_head[:, None] * stride_query_head, row, stride_query_row, is_row, d, HEAD, False).to(DOT)
    key_base = keys + head * stride_key_head
    value_base = values + head * stride_value_head
    pages = page_table + request * stride_table if PAGE_SIZE > 0 else None

    # Key blocks: those of the sinks, then, after a gap, those from the window's first on. Without a window all, in order.
    gap_start = 0
    gap = 0
    if IS_WINDOWED:
        begin = tl.maximum(first - window + 1, 0) // BLOCK_N
        gap_start = tl.minimum(tl.cdiv(sinks, BLOCK_N), begin)
        gap = begin - gap_start
        full_blocks = 0
    else:
        full_blocks = (first + 1) // BLOCK_N
    num_blocks = tl.cdiv(end, BLOCK_N) - gap
    share = tl.cdiv(num_blocks, num_splits)
    start = split * share
    stop = tl.minimum(start + share, num_blocks)
    full_stop = tl.maximum(tl.minimum(full_blocks, stop), start)

    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    scale_2 = scale * LOG2_E
    for i in tl.range(start, full_stop):
        t = i * BLOCK_N + tl.arange(0, BLOCK_N)
        is_key = t < end
        slot = t if PAGE_SIZE == 0 else find_slots(t, is_key, pages, PAGE_SIZE)
        k = load_rows(key_base, slot, stride_key_row, is_key, d, HEAD, True).to(DOT)
        s = tl.dot(q, tl.trans(k), input_precision="tf32x3") * scale_2
        v = load_rows(value_base, slot, stride_value_row, is_key, d, HEAD, True).to(DOT)
        acc, top, total = _fold(acc, top, total, s, v, DOT)
    for i in tl.range(full_stop, stop):
        t = tl.where(i < gap_start, i, i + gap) * BLOCK_N + tl.arange(0, BLOCK_N)
        is_key = t < end
        slot = t if PAGE_SIZE == 0 else find_slots(t, is_key, pages, PAGE_SIZE)
        k = load_rows(key_base, slot, stride_key_row, is_key, d, HEAD, False).to(DOT)
        s = tl.dot(q, tl.trans(k), input_precision="tf32x3") * scale_2
        is_visible = t[None, :] <= position[:, None]
        if IS_WINDOWED:
            is_visible = is_visible & ((position[:, None] - t[None, :] < window) | (t[None, :] < sinks))
        s = tl.where(is_visible, s, float("-inf"))
        v = load_rows(value_base, slot, stride_value_row, is_key, d, HEAD, False).to(DOT)
        acc, top, total = _fold(acc, top, total, s, v, DOT)

    # A share may hold no key of a row: its output is zero and its log-sum-exp -inf.
    total = tl.where(total > 0.0, total, 1.0)
    out = acc / total[:, None]
    lse = (top + tl.log2(total)) * LN_2
    at = (split.to(tl.int64) * num_rows + row) * (tl.num_programs(1) * GROUP) + query_head
    tl.store(parts + at[:, None] * HEAD + d[None, :], out.to(parts.dtype.element_ty), mask=is_row[:, None] & (d[None, :] < HEAD))
    tl.store(part_lse + at, lse, mask=is_row)


@triton.jit
def _fold(acc, top, total, s, v, DOT: tl.constexpr):
    """Adds one key block with scores s [M, N], in powers of two, to the running output, largest score and sum."""
    new_top = tl.maximum(top, tl.max(s, 1))
    # Where nothing was visible so far both are -inf, whose difference is not a number.
    base = tl.where(new_top == float("-inf"), 0.0, new_top)
    p = tl.exp2(s - base[:, None])
    shrink = tl.exp2(top - base)
    total = total * shrink + tl.sum(p, 1)
    acc = tl.dot(p.to(DOT), v, acc * shrink[:, None], input_precision="tf32x3")
    return acc, new_top, total


def _combine(parts: Tensor, part_lse: Tensor, out: Tensor, lse: Tensor) -> None:
    """Writes the sum of the splits' outputs [splits, R, Hq, D], weighed by their log-sum-exp, to `out` and `lse`."""
    num_splits, num_rows, num_heads, dim = parts.shape
    block = 16
    combine_kernel[(triton.cdiv(num_rows * num_heads, block),)](
        parts, part_lse, out, lse, num_rows * num_heads, num_splits, HEAD=dim, BLOCK_D=padded_head(dim), BLOCK=block, num_warps=4
    )


@triton.jit(do_not_specialize=["num_rows", "num_splits"])
def combine_kernel(parts, part_lse, out, lse, num_rows, num_splits, HEAD: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK: tl.constexpr):
    """BLOCK of num_rows rows: lse = log sum_s exp(lse_s), out = sum_s exp(lse_s - lse) out_s."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, BLOCK_D)
    is_row = row < num_rows
    mask = is_row[:, None] & (d[None, :] < HEAD)
    acc = tl.zeros([BLOCK, BLOCK_D], dtype=tl.float32)
    top = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for split in range(num_splits):
        at = row.to(tl.int64) + split * num_rows
        part_top = tl.load(part_lse + at, mask=is_row, other=0.0)
        part = tl.load(parts + at[:, None] * HEAD + d[None, :], mask=mask, other=0.0)
        new_top = tl.maximum(top, part_top)
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        shrink, weight = tl.exp(top - base), tl.exp(part_top - base)
        acc = acc * shrink[:, None] + part * weight[:, None]
        total = total * shrink + weight
        top = new_top
    tl.store(out + row.to(tl.int64)[:, None] * HEAD + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty), mask=mask)
    tl.store(lse + row, top + tl.log(total), mask=is_row)
