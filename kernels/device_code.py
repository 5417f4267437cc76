"""What the Triton kernels share: pieces of device code, and what their launchers have to know of the device."""

import torch
import triton
import triton.language as tl

from kernels.tiles import Capability

# Scores are kept in powers of two, which the hardware raises to.
LOG2_E, LN_2 = tl.constexpr(1.4426950408889634), tl.constexpr(0.6931471805599453)


@triton.jit
def load_rows(base, index, stride, is_row, d, HEAD: tl.constexpr, ALL_ROWS: tl.constexpr):
    """Loads rows `index` [n] of HEAD values as [n, padded], zero where there is none; a masked row is not touched."""
    at = base + index.to(tl.int64)[:, None] * stride + d[None, :]
    if ALL_ROWS:
        rows = tl.load(at) if d.shape[0] == HEAD else tl.load(at, mask=d[None, :] < HEAD, other=0.0)
    else:
        rows = tl.load(at, mask=is_row[:, None] & (d[None, :] < HEAD), other=0.0)
    return rows


@triton.jit
def find_slots(positions, is_position, pages, PAGE_SIZE: tl.constexpr):
    """Returns the cache slots of a request's positions by its page table."""
    page = tl.load(pages + positions // PAGE_SIZE, mask=is_position, other=0)
    return page * PAGE_SIZE + positions % PAGE_SIZE


def is_interpreted() -> bool:
    """Returns whether Triton kernels run in its interpreter, which is settled when triton is first imported."""
    return not isinstance(load_rows, triton.JITFunction)


def dot_type(dtype: torch.dtype) -> tl.dtype:
    """Returns the number type that matrix products of the kernel multiply.

    The interpreter keeps bfloat16 as bit patterns and multiplies those (triton issue 11584), so it gets float32.
    """
    if is_interpreted():
        return tl.float32
    return {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[dtype]


def capability(device: torch.device) -> Capability | None:
    """Returns the compute capability of a GPU, None of anything else."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def num_processors(device: torch.device) -> int:
    """Returns the multiprocessors of a GPU; 1 of anything else."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
