"""Says where the numbers of a run come from: model, device, versions, commit, and what "disk" meant."""

import datetime
import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path

import torch

from engine.checkout import commit
from engine.runtime import Runtime
from engine.types import Provenance, Span

_PACKAGES = ("torch", "transformers", "gradio")
PAGE_CACHE = {
    "kept": "not dropped: files just written or read come from memory",
    "dropped": "dropped before every timed prefill: stored chunks come from the disk",
    "direct": "passed by with O_DIRECT: stored chunks come from the disk",
}


def provenance(runtime: Runtime, spans: Sequence[Span] = ()) -> Provenance:
    """Returns the provenance of numbers measured now; disk bandwidth is that of the given load spans."""
    spec = runtime.model.spec
    return Provenance(
        mode="live",
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=commit(),
        model=spec.name,
        revision=spec.revision,
        weights=spec.weights,
        dtype=spec.dtype,
        device=_device_name(runtime.model.device),
        num_threads=runtime.num_threads,
        kernels=runtime.decoder.ops.name + runtime.steps.note,
        disk_mb_per_s=_bandwidth(spans),
        page_cache=_page_cache(runtime),
        versions={name: importlib.metadata.version(name) for name in _PACKAGES} | {"python": platform.python_version()},
    )


def _page_cache(runtime: Runtime) -> str:
    """Returns what reads met; where they cannot pass the cache by, it is dropped before them."""
    mode, hindrance = runtime.settings.page_cache, runtime.store.direct_hindrance
    if mode != "direct" or hindrance is None:
        return PAGE_CACHE[mode]
    return f"{PAGE_CACHE['dropped']}; O_DIRECT could not be had, as {hindrance}"


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
    name = names[0] if names else platform.processor() or platform.machine()
    # Virtual machines call very different processors by one name; what torch computes with tells them apart.
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"
