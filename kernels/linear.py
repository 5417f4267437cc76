"""Matrix products with a weight that is laid out once, for the many small and middling row counts of fusion."""

import torch.nn.functional as F
from torch import Tensor, float32

from kernels.onednn import onednn_product, packed
from kernels.products import fastest_products


class Linear:
    """rows [R, in] -> rows @ weight.T + bias [R, out]; weight: [out, in]. Holds the weight as the device multiplies fastest.

    Where it is packed, that is a copy: the caller lets go of its own.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.bias, self.num_weights = bias, weight.numel()
        self._is_packed = weight.device.type == "cpu" and weight.dtype == float32 and fastest_products().weights
        self._weight = packed(weight) if self._is_packed else weight

    @property
    def weight(self) -> Tensor:
        """Returns the weight [out, in] in plain layout, a new tensor where it is packed."""
        return self._weight.to_dense() if self._is_packed else self._weight

    def __call__(self, rows: Tensor) -> Tensor:
        """Returns the product as a new tensor."""
        if self._is_packed:
            return onednn_product(rows, self._weight, self.bias)
        return F.linear(rows, self._weight, self.bias)
