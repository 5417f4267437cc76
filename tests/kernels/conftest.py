"""The kernels' device, and outputs that begin full of NaN."""

import pytest
import torch
from kernel_samples import HAS_GPU


@pytest.fixture(scope="session")
def device():
    return torch.device("cuda" if HAS_GPU else "cpu")


@pytest.fixture(autouse=True)
def outputs_full_of_nan():
    """Fills everything that torch.empty returns with NaN, the largest integer where there is none."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)
