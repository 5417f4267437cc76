"""ZeroGPU's way of lending a GPU to one call at a time, through the package `spaces`; nothing anywhere else."""

import logging
import os
from collections.abc import Generator, Mapping

import httpx

from engine.errors import BackendUnavailable
from engine.gpu_calls import Call, GpuCalls, Item, gpu_seconds, run_on_gpu
from engine.settings import Settings
from engine.space import on_zerogpu
from engine.types import FusionRequest

logger = logging.getLogger(__name__)


def lent_gpu(env: Mapping[str, str] = os.environ) -> GpuCalls | None:
    """Returns how runs get a GPU on a ZeroGPU Space; None elsewhere, and where `spaces` is not installed.

    To be called before torch or gradio are imported, both of which `spaces` patches, and before the page is launched, when the hub
    looks for functions that ask for a GPU.
    """
    if not on_zerogpu(env):
        return None
    try:
        import spaces
    except ImportError:
        logger.warning("This Space has ZeroGPU, but the package spaces is not installed; everything runs on the processor.")
        return None
    return GpuCalls(in_sentences(spaces.GPU(run_on_gpu, duration=gpu_seconds)))


def in_sentences(lent: Call) -> Call:
    """Returns the lender's function with what it raises told as one sentence. Raises BackendUnavailable."""
    from gradio import Error

    def call(model: str, settings: Settings, request: FusionRequest, methods: tuple[str, ...]) -> Generator[Item, None, None]:
        try:
            yield from lent(model, settings, request, methods)
        except (Error, RuntimeError, httpx.HTTPError) as error:
            # No quota left, nobody's turn within a minute, a worker that ended, or the lender's own service out of reach.
            parts = (str(part) for part in (getattr(error, "title", ""), getattr(error, "message", error)) if part)
            reason = " ".join(": ".join(parts).split())[:200].rstrip(".")
            raise BackendUnavailable(f"No GPU could be had for this run ({reason}); what is shown stays, so try again later.") from error

    return call
