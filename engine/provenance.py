"""Says where the numbers of a run come from: model, device, versions, commit, and what "disk" meant."""

import datetime
import importlib.metadata
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch

from engine.runtime import Runtime
from engine.types import Provenance, Span

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("torch", "transformers", "gradio")


def provenance(runtime: Runtime, spans: Sequence[Span] = ()) -> Provenance:
    """Returns the provenance of numbers measured now; disk bandwidth is that of the given load spans."""
    spec = runtime.model.spec
    return Provenance(
        mode="live",
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=_commit(),
        model=spec.name,
        revision=spec.revision,
        weights=spec.weights,
        dtype=spec.dtype,
        device=_device_name(runtime.model.device),
        num_threads=runtime.num_threads,
        kernels=runtime.decoder.ops.name,
        disk_mb_per_s=_bandwidth(spans),
        page_cache="not dropped: files just written or read come from memory",
        versions={name: importlib.metadata.version(name) for name in _PACKAGES} | {"python": platform.python_version()},
    )


def _bandwidth(spans: Sequence[Span]) -> float | None:
    reads = [span for span in spans if span.lane == "disk" and span.size_bytes]
    seconds = sum(span.end_s - span.start_s for span in reads)
    return sum(span.size_bytes for span in reads) / seconds / 1e6 if seconds > 0 else None


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    """Returns the short commit of the checkout, "unknown" outside one."""
    try:
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"
