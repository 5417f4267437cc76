"""torch's vector functions on the CPU, made safe for their first use by several threads."""

import torch

# Of those that torch hands to Intel's library, the ones used here.
FUNCTIONS = (torch.cos, torch.sin, torch.exp, torch.log, torch.sqrt)


def settle_vector_math() -> None:
    """Calls each function once from one thread, so that Intel's library has settled which version it uses.

    Where several threads make the first call together, one of them may get a version with errors of 1e-4 for its part of
    that one call (pytorch issue 188792; seen in 8 of 52 processes on a Sapphire Rapids, in cosines of RoPE: logits were off by 1e-3).
    """
    for dtype in (torch.float32, torch.float64):
        one = torch.ones(1, dtype=dtype)
        for function in FUNCTIONS:
            function(one)
