"""The torch versions that the engine runs where Triton is not used: same results, less memory traffic."""

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.linear import has_onednn, onednn_product
from kernels.reference import rank_tokens, token_scores, weighted_attention
from kernels.rows import RowSet

__all__ = ["rank_tokens", "rotate_keys", "selected_attention", "token_scores", "weighted_attention"]

# Up to here torch's own kernel is as fast: one row reads K and V once and has no use for products.
FEW_ROWS = 8


def rotate_keys(raw: Tensor, cos: Tensor, sin: Tensor, out: Tensor) -> None:
    """Writes RoPE(raw) to `out`, each half in two passes and without a temporary of full size."""
    half = raw.shape[-1] // 2
    first, second = raw[..., :half], raw[..., half:]
    torch.mul(first, cos, out=out[..., :half]).addcmul_(second, sin, value=-1.0)
    torch.mul(second, cos, out=out[..., half:]).addcmul_(first, sin)


def selected_attention(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet) -> Tensor:
    """Returns attention of scattered rows [R, Hq, D], block by block, each block's keys ending at its last row.

    The query heads of a group are stacked as rows of one head, so K and V are never repeated in memory.
    """
    if rows.num_rows > FEW_ROWS and query.device.type == "cpu" and query.dtype == torch.float32 and has_onednn():
        return _attention_by_products(query, keys, values, rows)
    num_rows, num_heads, dim = query.shape
    k, v = keys.transpose(0, 1)[None], values.transpose(0, 1)[None]
    if rows.is_prefix:
        out = F.scaled_dot_product_attention(
            query.transpose(0, 1)[None], k[:, :, :num_rows], v[:, :, :num_rows], is_causal=num_rows > 1, enable_gqa=True
        )
        return out[0].transpose(0, 1)
    num_kv_heads = keys.shape[1]
    group = num_heads // num_kv_heads
    result = torch.empty_like(query)
    for block in rows.blocks:
        n = block.stop - block.start
        q = query[block.start : block.stop].view(n, num_kv_heads, group, dim).transpose(0, 1)
        out = F.scaled_dot_product_attention(
            q.reshape(1, num_kv_heads, n * group, dim),
            k[:, :, : block.key_end],
            v[:, :, : block.key_end],
            attn_mask=None if block.mask is None else F.pad(block.mask, (block.mask_start, 0)),
        )
        target = result[block.start : block.stop].view(n, num_kv_heads, group, dim)
        target.copy_(out.view(num_kv_heads, n, group, dim).transpose(0, 1))
    return result


def _attention_by_products(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet) -> Tensor:
    """Returns the same by two matrix products a block and KV head, the scores of a block small enough for the caches."""
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
