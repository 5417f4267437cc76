"""oneDNN's matrix product, with weights that may be laid out for it once."""

import platform

import torch
from torch import Tensor


def has_onednn() -> bool:
    """Returns whether this torch can multiply through oneDNN with weights laid out for it."""
    if not (torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")):
        return False
    return hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")


def onednn_product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns rows @ weight.T + bias; float32 on the CPU, where `has_onednn`.

    A weight that is a strided view is legal but hundreds of times slower; hand in contiguous or packed ones.
    """
    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")


def packed(weight: Tensor) -> Tensor:
    """Returns a weight [out, in] laid out for `onednn_product`, a copy; `to_dense` gives the plain one back."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)
