"""The Triton versions, with the signatures of `KernelOps`; imported only where Triton is going to be used."""

import torch
import triton
from torch import Tensor

from kernels.batch import RowBatch
from kernels.device_code import capability, is_interpreted
from kernels.query_token_scores import query_token_scores as token_scores
from kernels.rotate_scatter_keys import rotate_keys, rotate_scatter_keys
from kernels.rows import RowSet
from kernels.sparse_prefill_attention import sparse_prefill_attention
from kernels.topk_select import topk_select

__all__ = [
    "rotate_keys",
    "rotate_scatter_keys",
    "selected_attention",
    "set_name",
    "sparse_prefill_attention",
    "token_scores",
    "topk_select",
]


def set_name() -> str:
    """Returns what a run records: Triton's version and what its kernels are compiled for."""
    if is_interpreted():
        return f"triton {triton.__version__}, interpreted"
    own = capability(torch.device("cuda", torch.cuda.current_device()))
    assert own is not None
    return f"triton {triton.__version__}, sm_{own[0]}{own[1]}"


def selected_attention(query: Tensor, keys: Tensor, values: Tensor, rows: RowSet) -> Tensor:
    """Returns attention of scattered rows [R, Hq, D] of one request; the blocks of `rows` are not needed but for their end."""
    key_end = rows.blocks[-1].key_end
    batch = RowBatch(rows.positions, (rows.num_rows,), (key_end,), key_end)
    return sparse_prefill_attention(query, keys, values, batch).out
