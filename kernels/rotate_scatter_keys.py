"""One pass that puts a layer's K and V of a request into its cache, in Triton: keys rotated, fresh rows merged in.

The law is `kernels.reference.rotate_scatter_keys`. A program takes a block of positions and all their heads: every stored or
fresh row and every entry of the rotary tables is read once, every slot written once. `rotate_keys` is the same pass
without merging and values.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.batch import KeysValues, Pages, check_pages
from kernels.checks import check_disjoint, check_heads, check_pair, check_vector
from kernels.device_code import find_slots
from kernels.tiles import padded_head

# Positions of a program: some 8 KiB of keys at a time, wide enough for full memory lines, small enough for thousands of programs.
BLOCK, NUM_WARPS = 32, 4


def rotate_scatter_keys(
    stored: KeysValues, fresh: KeysValues, source: Tensor, cos: Tensor, sin: Tensor, cache: KeysValues, pages: Pages | None = None
) -> None:
    """Writes a layer of one request to its cache; arguments as of the reference, which it agrees with.

    Every position without a stored row must have a fresh one, and entries of `source` lie below R: on a GPU nobody checks.
    Raises ValueError where shapes, strides or types do not fit together, or the cache shares memory with what is read.
    """
    num_tokens, heads = source.shape[0], cache.keys.shape[1:]
    check_pair("the cache", *cache)
    check_pair("the stored rows", *stored, like=cache.keys)
    check_pair("the fresh rows", *fresh, like=cache.keys)
    check_vector("The sources", source, (torch.int32,), cache.keys.device)
    for name, rows in (("stored", stored), ("fresh", fresh)):
        if rows.keys.shape[1] != heads[0]:
            raise ValueError(f"The {name} rows have {rows.keys.shape[1]} KV heads and the cache {heads[0]}; they must be the same model's.")
    _check_table("cos", cos, (num_tokens, heads[1] // 2), cache.keys)
    _check_table("sin", sin, (num_tokens, heads[1] // 2), cache.keys)
    if pages is not None:
        check_pages(pages, [num_tokens])
    elif num_tokens > cache.keys.shape[0]:
        raise ValueError(f"{num_tokens} positions do not fit a cache of {cache.keys.shape[0]} slots; give it as many.")
    for name, written in (("The key cache", cache.keys), ("The value cache", cache.values)):
        check_disjoint(name, written, *stored, *fresh)
    _launch(stored, fresh, source, cos, sin, cache, pages)


def rotate_keys(raw: Tensor, cos: Tensor, sin: Tensor, out: Tensor) -> None:
    """Writes RoPE(raw) to `out`, as the reference of this name.

    raw, out: [n, H, D]; cos, sin: [n, 1 or H, D / 2]. Raises ValueError as `rotate_scatter_keys`.
    """
    check_heads("The keys", raw)
    check_heads("The output", out, like=raw)
    if raw.shape != out.shape:
        raise ValueError(f"The keys are {list(raw.shape)} and the output {list(out.shape)}; they must have one shape.")
    check_disjoint("The output", out, raw)
    num_rows, num_heads, dim = raw.shape
    for name, table in (("cos", cos), ("sin", sin)):
        if table.dim() != 3 or table.shape[1] not in (1, num_heads):
            raise ValueError(f"{name} is {list(table.shape)}; it must be [{num_rows}, 1 or {num_heads}, {dim // 2}].")
        _check_table(name, table[:, 0], (num_rows, dim // 2), raw)
    _launch(KeysValues(raw, raw), None, None, cos, sin, KeysValues(out, out), None)


def _check_table(name: str, table: Tensor, shape: tuple[int, int], like: Tensor) -> None:
    if table.shape != shape or table.stride(-1) != 1 or table.device != like.device or not table.is_floating_point():
        raise ValueError(
            f"{name} is {table.dtype} {list(table.shape)} on {table.device}; it must be [{shape[0]}, {shape[1]}], rows contiguous."
        )


def _launch(
    stored: KeysValues, fresh: KeysValues | None, source: Tensor | None, cos: Tensor, sin: Tensor, cache: KeysValues, pages: Pages | None
) -> None:
    """Runs the kernel; without `fresh` and `source` only the stored keys are rotated."""
    num_tokens, num_heads, dim = (stored.keys if source is None else source).shape[0], *cache.keys.shape[1:]
    if not num_tokens:
        return
    new = stored if fresh is None else fresh
    per_head = cos.dim() == 3 and cos.shape[1] > 1
    tensors = (stored.keys, stored.values, new.keys, new.values, cache.keys, cache.values)
    scatter_kernel[(triton.cdiv(num_tokens, BLOCK),)](
        *tensors,
        source,
        cos,
        sin,
        None if pages is None else pages.table,
        num_tokens,
        *(stride for tensor in tensors for stride in tensor.stride()[:2]),
        cos.stride(0),
        sin.stride(0),
        cos.stride(1) if per_head else 0,
        sin.stride(1) if per_head else 0,
        NUM_HEADS=num_heads,
        HEAD=dim,
        BLOCK_D=padded_head(dim),
        BLOCK=BLOCK,
        PAGE_SIZE=0 if pages is None else pages.size,
        IS_MERGE=source is not None,
        TABLE_PER_HEAD=per_head,
        num_warps=NUM_WARPS,
    )


@triton.jit(do_not_specialize=["num_tokens"])
def scatter_kernel(
    stored_keys,
    stored_values,
    fresh_keys,
    fresh_values,
    cache_keys,
    cache_values,
    source,
    cos_table,
    sin_table,
    page_table,
    num_tokens,
    stride_stored_key,
    stride_stored_key_head,
    stride_stored_value,
    stride_stored_value_head,
    stride_fresh_key,
    stride_fresh_key_head,
    stride_fresh_value,
    stride_fresh_value_head,
    stride_cache_key,
    stride_cache_key_head,
    stride_cache_value,
    stride_cache_value_head,
    stride_cos,
    stride_sin,
    stride_cos_head,
    stride_sin_head,
    NUM_HEADS: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    IS_MERGE: tl.constexpr,
    TABLE_PER_HEAD: tl.constexpr,
):
    """BLOCK positions, all heads. k' = (k1 cos - k2 sin, k2 cos + k1 sin), k1 and k2 the halves of k; v' = v."""
    HALF: tl.constexpr = HEAD // 2
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_token = t < num_tokens
    half = tl.arange(0, BLOCK_D // 2)[None, :]
    slot = t if PAGE_SIZE == 0 else find_slots(t, is_token, page_table, PAGE_SIZE)
    is_half = is_token[:, None] & (half < HALF)
    if IS_MERGE:
        fresh_row = tl.load(source + t, mask=is_token, other=-1)
        is_fresh = fresh_row >= 0
    else:
        fresh_row = t
        is_fresh = t < 0
    is_fresh = is_fresh[:, None]
    old = t.to(tl.int64)[:, None]
    new = fresh_row.to(tl.int64)[:, None]
    to = slot.to(tl.int64)[:, None]
    at_cos = cos_table + old * stride_cos + half
    at_sin = sin_table + old * stride_sin + half
    cos = tl.load(at_cos, mask=is_half, other=0.0).to(tl.float32)
    sin = tl.load(at_sin, mask=is_half, other=0.0).to(tl.float32)
    # Two heads at a time, so that the loads of one are under way while the other is stored.
    for head in tl.range(NUM_HEADS, loop_unroll_factor=2):
        if TABLE_PER_HEAD:
            cos = tl.load(at_cos + head * stride_cos_head, mask=is_half, other=0.0).to(tl.float32)
            sin = tl.load(at_sin + head * stride_sin_head, mask=is_half, other=0.0).to(tl.float32)
        at = stored_keys + old * stride_stored_key + head * stride_stored_key_head + half
        first = tl.load(at, mask=is_half & ~is_fresh, other=0.0)
        second = tl.load(at + HALF, mask=is_half & ~is_fresh, other=0.0)
        if IS_MERGE:
            at = fresh_keys + new * stride_fresh_key + head * stride_fresh_key_head + half
            first = tl.where(is_fresh, tl.load(at, mask=is_half & is_fresh, other=0.0), first)
            second = tl.where(is_fresh, tl.load(at + HALF, mask=is_half & is_fresh, other=0.0), second)
        first = first.to(tl.float32)
        second = second.to(tl.float32)
        at = cache_keys + to * stride_cache_key + head * stride_cache_key_head + half
        kind = cache_keys.dtype.element_ty
        tl.store(at, (first * cos - second * sin).to(kind), mask=is_half)
        tl.store(at + HALF, (second * cos + first * sin).to(kind), mask=is_half)
        if IS_MERGE:
            d = tl.arange(0, BLOCK_D)[None, :]
            is_whole = is_token[:, None] & (d < HEAD)
            value = tl.load(stored_values + old * stride_stored_value + head * stride_stored_value_head + d, mask=is_whole & ~is_fresh)
            at = fresh_values + new * stride_fresh_value + head * stride_fresh_value_head + d
            value = tl.where(is_fresh, tl.load(at, mask=is_whole & is_fresh), value)
            tl.store(cache_values + to * stride_cache_value + head * stride_cache_value_head + d, value, mask=is_whole)
