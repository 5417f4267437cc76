"""What a prefill of the loaded model costs on this machine: measured once, kept with its provenance, found again.

Replays model times to first token with it. A file counts for the model, number format, device and threads it was measured with.
"""

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.model.calibration import calibration_path
from engine.model.spec import ModelSpec
from engine.prefix.cost import PrefillCost
from engine.prefix.cost_measure import medians, prefill_times
from engine.provenance import provenance
from engine.runtime import Runtime
from engine.types import Provenance

FORMAT, FOLDER = "fusescope-prefill-cost/1", "prefill_costs"

logger = logging.getLogger(__name__)


class MeasuredCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fitted prefill cost, what it was fitted to, and where.

    Args:
        times_s: by prompt length in tokens, every timed prefill in the order it ran.
    """

    cost: PrefillCost
    times_s: dict[int, tuple[float, ...]]
    provenance: Provenance
    format: str = FORMAT


def running_cost(
    runtime: Runtime, progress: Callable[[float], None] = lambda share: None, cancelled: Callable[[], bool] = lambda: False
) -> PrefillCost:
    """Returns the cost of the loaded model's prefill here: kept from before, or measured now and kept. Raises Cancelled."""
    path = calibration_path(runtime.settings.cache_dir / FOLDER, runtime.model.spec.name)
    here = provenance(runtime)
    kept = _read(path)
    if kept is not None and _setting(kept.provenance) == _setting(here):
        return kept.cost
    times = prefill_times(runtime.decoder, runtime.pool, progress, cancelled)
    cost = PrefillCost.fitted(_name(runtime.model.spec), *medians(times), _source(times, here))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(MeasuredCost(cost, times, here)), indent=1) + b"\n")
    partial.replace(path)
    return cost


def _setting(found: Provenance) -> tuple[object, ...]:
    """Returns what must be the same for a measurement to count."""
    return (found.model, found.revision, found.weights, found.dtype, found.device, found.num_threads, found.kernels)


def _source(times: dict[int, tuple[float, ...]], here: Provenance) -> str:
    rounds = min(len(found) for found in times.values())
    return (
        f"measured: {here.model} in {here.dtype} on {here.device}, {here.num_threads} threads; prefills of {min(times):,} to "
        f"{max(times):,} tokens, median of {rounds}, {here.created}, commit {here.commit}; no queueing"
    )


def _name(spec: ModelSpec) -> str:
    return f"{Path(spec.name).name}, measured"


def _read(path: Path) -> MeasuredCost | None:
    """Returns what a file holds, None where there is none or, with a warning, where it cannot be read."""
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=MeasuredCost)
    except (OSError, msgspec.DecodeError) as error:
        logger.warning("the prefill cost %s is measured again: %s", path, str(error).splitlines()[0])
        return None
    return found if found.format == FORMAT else None
