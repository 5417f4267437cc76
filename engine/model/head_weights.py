"""How much each attention head tells about what a question needs: fitted offline, one table per model."""

import logging
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from engine.model.calibration import calibration_path
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
    """Returns the weights fitted on this machine, else the shipped ones, else None."""
    for folder in (cache_dir / "head_weights", SHIPPED_DIR):
        path = calibration_path(folder, spec.name)
        if path.is_file():
            try:
                found = msgspec.json.decode(path.read_bytes(), type=HeadWeights)
            except (msgspec.DecodeError, OSError) as error:
                logger.warning("the head weights %s are passed over: %s", path, error)
                continue
            fits = found.layers and max(found.layers) < spec.num_layers and all(len(row) == spec.num_heads for row in found.weights)
            if fits and len(found.weights) == len(found.layers) and found.format == FORMAT:
                return found
    return None
