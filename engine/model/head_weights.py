"""How much each attention head tells about what a question needs: fitted offline, one table per model."""

import logging
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from engine.model.calibration import calibration_path, short_name
from engine.model.spec import ModelSpec

logger = logging.getLogger(__name__)

SHIPPED_DIR = Path(__file__).resolve().parents[2] / "assets" / "head_weights"
FORMAT = "fusescope-heads/1"


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """Weights of the query heads of some layers.

    Args:
        layers: ascending, 0-based.
        weights: [len(layers)][Hq], none negative.
        note: on what and how they were fitted.
    """

    model: str
    layers: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]
    note: str
    created: str
    num_samples: int
    format: str = FORMAT

    def of(self, layer: int) -> Tensor:
        """Returns float32 [Hq], the weights of one of `layers`."""
        return torch.tensor(self.weights[self.layers.index(layer)], dtype=torch.float32)


def find_head_weights(spec: ModelSpec, cache_dir: Path) -> HeadWeights | None:
    """Returns the weights fitted on this machine, else the shipped ones of a model of that name, else None."""
    for path in (calibration_path(cache_dir / "head_weights", spec.name), *sorted(SHIPPED_DIR.glob("*.json"))):
        found = _read(path)
        if found and short_name(found.model) == short_name(spec.name) and _fits(found, spec):
            return found
    return None


def _read(path: Path) -> HeadWeights | None:
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=HeadWeights)
    except (msgspec.DecodeError, OSError) as error:
        logger.warning("the head weights %s are passed over: %s", path, error)
        return None


def _fits(found: HeadWeights, spec: ModelSpec) -> bool:
    shapes_agree = len(found.weights) == len(found.layers) and all(len(row) == spec.num_heads for row in found.weights)
    return found.format == FORMAT and bool(found.layers) and max(found.layers) < spec.num_layers and shapes_agree
