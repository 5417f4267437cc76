"""The calibration tables that are shipped, as evidence for claims about layers."""

from pathlib import Path

import msgspec

from engine.claims.claim import LayerTable
from engine.model.calibration import SHIPPED_DIR, Calibration


def layer_tables(folder: Path = SHIPPED_DIR) -> tuple[LayerTable, ...]:
    """Returns the measured tables of a folder. Raises msgspec.ValidationError on a bad file."""
    found = (msgspec.json.decode(path.read_bytes(), type=Calibration) for path in sorted(folder.glob("*.json")))
    return tuple(_table(one) for one in found if one.origin == "measured" and one.scores)


def _table(found: Calibration) -> LayerTable:
    scores = sorted(found.scores, key=lambda score: score.layer)
    return LayerTable(
        tuple(score.layer for score in scores),
        tuple(score.recall for score in scores),
        tuple(score.recall_se for score in scores),
        found.model,
        found.num_samples,
        found.created,
    )
