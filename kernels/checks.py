"""Checks that every wrapper of a Triton kernel makes before it launches; the kernels trust them."""

import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
MAX_HEAD_DIM = 256


def check_heads(name: str, tensor: Tensor, like: Tensor | None = None) -> None:
    """Raises ValueError where a tensor is not [n, heads, D] with values of a head side by side, and of the kind of `like`."""
    if tensor.dim() != 3 or tensor.stride(-1) != 1:
        raise ValueError(
            f"{name} has shape {list(tensor.shape)} and strides {list(tensor.stride())}; "
            "it must be [n, heads, D], the values of a head side by side."
        )
    if tensor.dtype not in FLOATS:
        raise ValueError(f"{name} is {tensor.dtype}; it must be float32, float16 or bfloat16.")
    if not 16 <= tensor.shape[-1] <= MAX_HEAD_DIM or tensor.shape[-1] % 2:
        raise ValueError(f"{name} has heads of {tensor.shape[-1]} values; they must be even, from 16 to {MAX_HEAD_DIM}.")
    if like is not None and (tensor.dtype != like.dtype or tensor.device != like.device or tensor.shape[-1] != like.shape[-1]):
        raise ValueError(
            f"{name} is {tensor.dtype} on {tensor.device} with heads of {tensor.shape[-1]} values; "
            f"it must be {like.dtype} on {like.device} with {like.shape[-1]}, as what it is used with."
        )


def check_pair(name: str, keys: Tensor, values: Tensor, like: Tensor | None = None) -> None:
    """Raises ValueError where keys and values are not of one kind and shape."""
    check_heads(f"The keys of {name}", keys, like)
    check_heads(f"The values of {name}", values, keys)
    if keys.shape != values.shape:
        raise ValueError(f"The keys of {name} are {list(keys.shape)} and its values {list(values.shape)}; they must have one shape.")


def check_group(query: Tensor, keys: Tensor) -> int:
    """Returns the query heads per KV head. Raises ValueError where they do not divide."""
    group, rest = divmod(query.shape[1], keys.shape[1])
    if rest or not group:
        raise ValueError(f"{query.shape[1]} query heads do not divide among {keys.shape[1]} KV heads; take a multiple.")
    return group


def check_vector(name: str, tensor: Tensor, dtypes: tuple[torch.dtype, ...], device: torch.device, length: int | None = None) -> None:
    """Raises ValueError where a tensor is not one contiguous row of numbers of one of the types, on the device."""
    if tensor.dim() != 1 or tensor.dtype not in dtypes or tensor.device != device or not tensor.is_contiguous():
        kinds = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise ValueError(
            f"{name} is {tensor.dtype} {list(tensor.shape)} on {tensor.device}; it must be contiguous, {kinds} [n], on {device}."
        )
    if length is not None and tensor.shape[0] != length:
        raise ValueError(f"{name} has {tensor.shape[0]} entries; it must have {length}.")


def check_disjoint(name: str, written: Tensor, *read: Tensor) -> None:
    """Raises ValueError where an output shares memory with an input: programs run in no order, so inputs would change underneath."""
    first, last = _extent(written)
    for tensor in read:
        start, end = _extent(tensor)
        if tensor.numel() and written.numel() and start < last and first < end:
            raise ValueError(f"{name} shares memory with an input; give it memory of its own.")


def _extent(tensor: Tensor) -> tuple[int, int]:
    """Returns the [first, behind last) bytes that a tensor reaches over; interleaved views count as shared."""
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size)
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()
