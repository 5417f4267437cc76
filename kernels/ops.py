"""One frozen set of operations per version, and the choice between them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import ModuleType

from torch import Tensor

from kernels import reference, torch_ops
from kernels.linear import has_onednn
from kernels.rows import RowSet

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


class KernelsUnavailable(RuntimeError):
    """A kernel set was asked for by name and cannot be had here."""


def reference_ops() -> KernelOps:
    """Returns the float32 reference versions."""
    return _ops("reference", reference)


def load_ops(kind: str = "auto", device: str = "cpu") -> KernelOps:
    """Returns the set called "torch" or "reference"; "auto" takes the best for the device and logs its choice.

    Raises KernelsUnavailable for an explicit choice that cannot be had.
    """
    if kind == "triton":
        raise KernelsUnavailable("The Triton kernels are not part of this version; use FUSESCOPE_KERNELS=torch or auto.")
    if kind == "reference":
        return reference_ops()
    name = "torch, oneDNN products" if device == "cpu" and has_onednn() else "torch"
    if kind == "auto":
        logger.info("kernels: %s on %s", name, device)
    return _ops(name, torch_ops)


def _ops(name: str, source: ModuleType) -> KernelOps:
    return KernelOps(name, **{field.name: getattr(source, field.name) for field in fields(KernelOps) if field.name != "name"})
