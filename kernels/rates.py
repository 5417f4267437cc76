"""What a GPU can do at most, measured here and now: bytes it moves and products it multiplies a second."""

from typing import NamedTuple

import torch


class Rates(NamedTuple):
    """bytes_per_s: read and written, of a copy within the GPU; flops_per_s: of a bfloat16 matrix product."""

    bytes_per_s: float
    flops_per_s: float

    def floor_ms(self, num_bytes: int, num_flops: int) -> float:
        """Returns the time that moving bytes or multiplying takes, whichever is longer."""
        return 1e3 * max(num_bytes / self.bytes_per_s, num_flops / self.flops_per_s)


def measure_rates(device: torch.device, size_bytes: int = 2**30, size: int = 8192) -> Rates:
    """Returns the rates of a GPU.

    Args:
        size_bytes: bytes that are copied, more than its caches hold.
        size: rows and columns of the square matrices.
    """
    from triton.testing import do_bench

    source = torch.ones(size_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_ms = do_bench(lambda: target.copy_(source), warmup=20, rep=100, return_mode="median")
    # Random numbers: zeros cost less power, and clocks that stay higher for it flatter the rate.
    left, right = (torch.randn(size, size, device=device).to(torch.bfloat16) for _ in range(2))
    product_ms = do_bench(lambda: left @ right, warmup=20, rep=100, return_mode="median")
    return Rates(2 * size_bytes / copy_ms * 1e3, 2 * size**3 / product_ms * 1e3)
