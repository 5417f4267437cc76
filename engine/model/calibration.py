"""Which layers tell best what a question needs: tables shipped, measured here, or a labelled guess."""

import logging
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.model.spec import ModelSpec

logger = logging.getLogger(__name__)

SHIPPED_DIR = Path(__file__).resolve().parents[2] / "assets" / "calibration"
FORMAT = "fusescope-calibration/1"


@dataclass(frozen=True, slots=True)
class LayerScore:
    """One layer's evidence: mean Recall@10 % of answer tokens with its standard error, mean KL to full prefill."""

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
        num_samples: question-passage samples behind `scores`, 0 for a guess.
    """

    model: str
    layers: tuple[int, ...]
    origin: str
    note: str
    created: str = ""
    num_samples: int = 0
    scores: tuple[LayerScore, ...] = ()
    format: str = FORMAT


def calibration_path(folder: Path, model: str) -> Path:
    """Returns where the calibration of a model is kept in a folder."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in model)
    return folder / f"{safe}.json"


def find_calibration(spec: ModelSpec, cache_dir: Path) -> Calibration:
    """Returns the table measured on this machine, else the shipped one, else a guess two thirds of the way up."""
    for folder in (cache_dir / "calibration", SHIPPED_DIR):
        path = calibration_path(folder, spec.name)
        if path.is_file():
            try:
                found = msgspec.json.decode(path.read_bytes(), type=Calibration)
            except (msgspec.DecodeError, OSError) as error:
                logger.warning("the calibration table %s is passed over: %s", path, error)
                continue
            if found.layers and max(found.layers) < spec.num_layers and found.format == FORMAT:
                return found
    layer = min(spec.num_layers - 1, round(spec.num_layers * 2 / 3))
    return Calibration(
        spec.name, (layer,), "guess", f"Layer {layer} is a guess for {spec.name}; measure it with python -m engine.model.calibrate."
    )
