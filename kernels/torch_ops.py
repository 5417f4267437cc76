"""The torch versions that the engine runs where Triton is not used: same results, less memory traffic."""

import torch
from torch import Tensor

from kernels.attention import attention_by_products, attention_by_torch
from kernels.products import fastest_products
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
    """Returns attention of scattered rows [R, Hq, D], by what is faster on this processor."""
    on_cpu = query.device.type == "cpu" and query.dtype == torch.float32
    if on_cpu and rows.num_rows > FEW_ROWS and fastest_products().attention:
        return attention_by_products(query, keys, values, rows)
    return attention_by_torch(query, keys, values, rows)
