"""Tensors, row sets and tolerances that the tests of all kernels share."""

import os

import pytest
import torch

# Kernels are interpreted on a CPU unless TRITON_INTERPRET=0 and there is a GPU.
HAS_GPU = os.environ["TRITON_INTERPRET"] != "1" and torch.cuda.is_available()
# Largest absolute difference from the float32 reference.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
NUM_KEYS = 67


def draw(*shape, seed, device="cpu", dtype=torch.float32):
    """Returns normal numbers, the same on every device."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=device, dtype=dtype)


def scattered(num_rows, num_keys=NUM_KEYS, seed=0):
    """Returns sorted random positions, never the last one."""
    return torch.randperm(num_keys - 1, generator=torch.Generator().manual_seed(seed))[:num_rows].sort().values


# Counts off every block multiple; stacked with a group of 3 or more they take several blocks.
ROWS = {
    "one_row": torch.tensor([0]),
    "last_row": torch.tensor([NUM_KEYS - 1]),
    "all_rows": torch.arange(NUM_KEYS),
    "random_rows": scattered(23),
}


def largest_error(got, expected):
    """Returns the largest absolute difference; infinite where one is not a number."""
    return torch.nan_to_num((got.float() - expected.float()).abs(), nan=float("inf")).max().item()


def refused(words, call):
    """Asserts that a call raises ValueError with a message that holds `words`."""
    with pytest.raises(ValueError, match=words):
        call()
