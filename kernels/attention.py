"""Attention of scattered rows on the CPU, block by block, each block's keys ending at its last row.

The query heads of a group are stacked as rows of one head, so K and V are never repeated in memory.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.onednn import onednn_product
from kernels.rows import RowSet


def attention_by_torch(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet) -> Tensor:
    """Returns attention [R, Hq, D] by torch's own kernel, whose scores never reach memory."""
    num_rows, num_heads, dim = query.shape
    k, v = keys.transpose(0, 1)[None], values.transpose(0, 1)[None]
    if rows.is_prefix:
        out = F.scaled_dot_product_attention(
            query.transpose(0, 1)[None], k[:, :, :num_rows], v[:, :, :num_rows], is_causal=num_rows > 1, enable_gqa=True
        )
        return out[0].transpose(0, 1)
    num_kv_heads = keys.shape[1]
    stacked = query.view(num_rows, num_kv_heads, -1, dim).transpose(0, 1).reshape(1, num_kv_heads, -1, dim)
    out = (_split if query.device.type == "cpu" else _masked)(stacked, k, v, rows, num_heads // num_kv_heads)
    return out.view(num_kv_heads, num_rows, -1, dim).transpose(0, 1).reshape(num_rows, num_heads, dim)


def _masked(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet, group: int) -> Tensor:
    """Returns attention of stacked rows [1, Hkv, R group, D], each block with a mask over all its keys."""
    out = torch.empty_like(query)
    for start, stop, key_end, mask_start, mask in rows.blocks:
        at = slice(start * group, stop * group)
        wide = None if mask is None else F.pad(mask, (mask_start, 0))
        out[:, :, at] = F.scaled_dot_product_attention(query[:, :, at], keys[:, :, :key_end], values[:, :, :key_end], attn_mask=wide)
    return out


def _split(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet, group: int) -> Tensor:
    """Returns the same on a CPU: what all rows of a block see without a mask, the keys among its rows apart.

    Reading a mask over all keys costs up to a tenth of the attention. The two parts are weighed by their log-sum-exp.
    """
    seen, among, share = torch.empty_like(query), torch.empty_like(query), query.new_ones(*query.shape[:3], 1)
    for start, stop, key_end, mask_start, mask in rows.blocks:
        at = slice(start * group, stop * group)
        seen[:, :, at], lse = _flash(query[:, :, at], keys[:, :, :mask_start], values[:, :, :mask_start])
        if mask is None:
            among[:, :, at] = 0.0
            continue
        among[:, :, at], other = _flash(query[:, :, at], keys[:, :, mask_start:key_end], values[:, :, mask_start:key_end], mask)
        # The first row has no key among the block's own; torch's kernel gives 0 for such a sum, so its share stays 1.
        share[:, :, at.start + group : at.stop, 0] = torch.sigmoid(lse - other)[:, :, group:]
    return torch.lerp(among, seen, share)


def _flash(query: Tensor, keys: Tensor, values: Tensor, attn_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Returns attention [1, H, S, D] of S rows and the log-sum-exp of their scores [1, H, S]."""
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, keys, values, attn_mask=attn_mask)


def attention_by_products(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet) -> Tensor:
    """Returns the same by two oneDNN products a block and KV head, the scores of a block small enough for the caches."""
    num_rows, num_heads, dim = query.shape
    num_kv_heads, end = keys.shape[1], rows.blocks[-1].key_end
    group = num_heads // num_kv_heads
    # Each head's K and V^T must be contiguous for the products; K of a request's cache is already.
    k = keys[:end].transpose(0, 1)
    k = k if k.stride()[1:] == (dim, 1) else k.contiguous()
    v = values[:end].permute(1, 2, 0).contiguous()
    q = torch.empty(num_kv_heads, num_rows, group, dim)
    torch.mul(query.view(num_rows, num_kv_heads, group, dim).transpose(0, 1), dim**-0.5, out=q)
    result = torch.empty_like(query)
    target = result.view(num_rows, num_kv_heads, group, dim)
    for start, stop, key_end, mask_start, mask in rows.blocks:
        for head in range(num_kv_heads):
            scores = onednn_product(q[head, start:stop].view(-1, dim), k[head, :key_end])
            if mask is not None:
                scores[:, mask_start:].add_(mask)
            out = onednn_product(torch.softmax(scores, dim=-1, out=scores), v[head, :, :key_end].contiguous())
            target[start:stop, head] = out.view(-1, group, dim)
    return result
