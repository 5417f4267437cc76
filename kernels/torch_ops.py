"""The torch versions that the engine runs where Triton is not used: same results, less memory traffic."""

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.reference import rank_tokens, token_scores, weighted_attention
from kernels.rows import RowSet

__all__ = ["rank_tokens", "rotate_keys", "selected_attention", "token_scores", "weighted_attention"]


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
        q = query[block.start : block.stop].view(n, num_kv_heads, group, dim).permute(1, 2, 0, 3)
        out = F.scaled_dot_product_attention(
            q.reshape(1, num_kv_heads, group * n, dim), k[:, :, : block.key_end], v[:, :, : block.key_end], attn_mask=block.mask
        )
        target = result[block.start : block.stop].view(n, num_kv_heads, group, dim)
        target.copy_(out.view(num_kv_heads, group, n, dim).permute(2, 0, 1, 3))
    return result
