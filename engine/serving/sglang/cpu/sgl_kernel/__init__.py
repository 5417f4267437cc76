"""A stand-in for SGLang's compiled kernels on a CPU, where no wheel has them: the one function that the engine calls, in torch.

On PYTHONPATH of the CPU lane only. Anything else that is asked for says so when it is called.
"""

import torch


def assign_req_to_token_pool_cpu(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
    row_length: int,
) -> None:
    """Writes the new slots of every request to its row of `req_to_token`, from its start to its end."""
    taken = 0
    for row, start, stop in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True):
        req_to_token[row, start:stop] = out_cache_loc[taken : taken + stop - start].to(req_to_token.dtype)
        taken += stop - start


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is not available on this CPU; choose the torch_native attention backend.")

    return missing
