"""One frozen set of operations per version, and the choice between them."""

import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import ModuleType

import torch
from torch import Tensor

from kernels import reference, torch_ops
from kernels.batch import KeysValues, Pages, RowBatch
from kernels.products import fastest_products
from kernels.rows import RowSet

# bfloat16 products on tensor cores and asynchronous copies to shared memory begin with this compute capability.
LEAST_CAPABILITY = (8, 0)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KernelOps:
    """The operations of `kernels.reference`, in one version; `name` is recorded with every run."""

    name: str
    rotate_keys: Callable[[Tensor, Tensor, Tensor, Tensor], None]
    selected_attention: Callable[[Tensor, Tensor, Tensor, RowSet], Tensor]
    weighted_attention: Callable[[Tensor, Tensor, Tensor, RowSet, tuple[int, int], float, float], Tensor]
    token_scores: Callable[[Tensor, Tensor, Tensor, str], Tensor]
    rank_tokens: Callable[[Tensor], Tensor]
    sparse_prefill_attention: Callable[[Tensor, Tensor, Tensor, RowBatch, int | None, int], tuple[Tensor, Tensor]]
    rotate_scatter_keys: Callable[[KeysValues, KeysValues, Tensor, Tensor, Tensor, KeysValues, Pages | None], None]
    topk_select: Callable[[Tensor, int], Tensor]

    def has_own(self, op: str) -> bool:
        """Returns whether an operation is another one than the reference, which callers with steps of their own may do without."""
        return getattr(self, op) is not getattr(reference, op)


class KernelsUnavailable(RuntimeError):
    """A kernel set was asked for by name and cannot be had here."""


def reference_ops() -> KernelOps:
    """Returns the float32 reference versions."""
    return _ops("reference", reference)


def load_ops(kind: str = "auto", device: str = "cpu") -> KernelOps:
    """Returns the set called "torch", "triton" or "reference"; "auto" takes the best for the device and logs its choice.

    device: "cpu" or "cuda", of which the current one counts. Raises KernelsUnavailable for an explicit choice that cannot be had.
    """
    if kind not in ("auto", "torch", "triton", "reference"):
        raise KernelsUnavailable(f"The kernel set {kind!r} is not known; known ones are auto, torch, triton and reference.")
    if kind == "reference":
        return reference_ops()
    wants_triton = kind == "triton" or (kind == "auto" and device == "cuda")
    hindrance = _hindrance(device, is_explicit=kind == "triton") if wants_triton else None
    if kind == "triton" and hindrance:
        raise KernelsUnavailable(f"The Triton kernels were asked for, but {hindrance}; use FUSESCOPE_KERNELS=torch or auto.")
    if wants_triton and not hindrance:
        ops = _triton_ops()
    else:
        ops = _ops(f"torch, {fastest_products()}" if device == "cpu" else "torch", torch_ops, reference)
    if kind == "auto":
        logger.info("kernels: %s on %s%s", ops.name, device, f", because {hindrance}" if hindrance else "")
    return ops


def _hindrance(device: str, is_explicit: bool) -> str | None:
    """Returns why the Triton kernels cannot run on a device, None where they can. The interpreter counts only when asked for."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    from kernels.device_code import is_interpreted

    if is_interpreted():
        return None if is_explicit else "TRITON_INTERPRET is set and Triton's interpreter is for tests"
    if device != "cuda":
        return f"they need an NVIDIA GPU and the device is {device!r}"
    own = torch.cuda.get_device_capability()
    if torch.version.cuda is None or own < LEAST_CAPABILITY:
        return f"they need an NVIDIA GPU of compute capability 8.0 and this one has {own[0]}.{own[1]}"
    return None


def _triton_ops() -> KernelOps:
    from kernels import triton_ops

    # Ranking all scores is torch's own stable sort; the two-part attention of one rival is not worth a kernel.
    return _ops(triton_ops.set_name(), triton_ops, reference)


def _ops(name: str, *sources: ModuleType) -> KernelOps:
    """Returns the set of operations, each from the first module that has it."""
    names = [field.name for field in fields(KernelOps) if field.name != "name"]
    return KernelOps(name, **{op: next(getattr(s, op) for s in sources if hasattr(s, op)) for op in names})
