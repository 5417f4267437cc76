"""Which layers tell best what a question needs: measured here, shipped (measured or published), or a labelled guess."""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.model.spec import ModelSpec

logger = logging.getLogger(__name__)

SHIPPED_DIR = Path(__file__).resolve().parents[2] / "assets" / "calibration"
FORMAT = "fusescope-calibration/1"


@dataclass(frozen=True, slots=True)
class LayerScore:
    """One layer's evidence: mean Recall@10 % of answer tokens with its standard error, mean KL to full prefill (nats) with its own."""

    layer: int
    recall: float
    recall_se: float
    kl: float | None = None
    kl_se: float | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """Critical layers of a model, best first, and why.

    Args:
        origin: "measured", "paper" or "guess"; a guess says so to the user.
        created: date, of the publication for a paper's table.
        num_samples: question-passage samples behind `scores`, 0 where there are none.
        num_layers: of the model the table is for, 0 where it does not say.
        aliases: other names of the same model, as they stand at the end of hub ids and paths.
    """

    model: str
    layers: tuple[int, ...]
    origin: str
    note: str
    created: str = ""
    num_samples: int = 0
    num_layers: int = 0
    aliases: tuple[str, ...] = ()
    scores: tuple[LayerScore, ...] = ()
    format: str = FORMAT


def calibration_path(folder: Path, model: str) -> Path:
    """Returns where the calibration of a model is kept in a folder."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in model)
    return folder / f"{safe}.json"


def short_name(model: str) -> str:
    """Returns what a hub id, a path or a folder of the hub's cache calls a model, without its owner and in lower case.

    Names are compared whole: a model whose name merely starts alike is another one.
    """
    cached = re.search(r"models--[^/\\]+?--([^/\\]+)[/\\]snapshots[/\\]", f"{model}/")
    last = cached.group(1) if cached else re.split(r"[/\\]", model.rstrip("/\\"))[-1]
    return last.casefold().replace("_", "-")


def find_calibration(spec: ModelSpec, cache_dir: Path) -> Calibration:
    """Returns the table measured on this machine, else the shipped one, else a guess two thirds of the way up."""
    measured = _read(calibration_path(cache_dir / "calibration", spec.name))
    if measured and _fits(measured, spec):
        return measured
    name = short_name(spec.name)
    for path in sorted(SHIPPED_DIR.glob("*.json")):
        found = _read(path)
        if found and name in map(short_name, (found.model, *found.aliases)) and _fits(found, spec):
            return found
    layer = min(spec.num_layers - 1, round(spec.num_layers * 2 / 3))
    return Calibration(
        spec.name, (layer,), "guess", f"Layer {layer} is a guess for {spec.name}; measure it with python -m engine.model.calibrate."
    )


def known_calibrations(cache_dir: Path) -> tuple[Calibration, ...]:
    """Returns the tables measured on this machine, then the shipped ones, one a model."""
    paths = [*sorted((cache_dir / "calibration").glob("*.json")), *sorted(SHIPPED_DIR.glob("*.json"))]
    found = [table for path in paths if (table := _read(path)) and table.format == FORMAT]
    return tuple({table.model: table for table in reversed(found)}.values())[::-1]


def _read(path: Path) -> Calibration | None:
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (msgspec.DecodeError, OSError) as error:
        logger.warning("the calibration table %s is passed over: %s", path, error)
        return None


def _fits(found: Calibration, spec: ModelSpec) -> bool:
    sizes_agree = found.num_layers in (0, spec.num_layers)
    return found.format == FORMAT and sizes_agree and bool(found.layers) and max(found.layers) < spec.num_layers
