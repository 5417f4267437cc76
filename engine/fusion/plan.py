"""What a method hands to the pipeline: the rows to recompute, the evidence, and what it did already."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from engine.model.cache import PLAIN, Reading


@dataclass(frozen=True, eq=False, slots=True)
class Resume:
    """Layers below `layer` are done: their K and V are in the cache, `hidden` [R, hidden] are the plan's rows behind them."""

    layer: int
    hidden: Tensor


@dataclass(frozen=True, slots=True)
class KeyShift:
    """Spreads the mean deviation of a chunk's recomputed keys over its other keys, weight beta n / (n + kappa) for n rows."""

    beta: float
    kappa: float


@dataclass(frozen=True, eq=False, slots=True)
class FusionPlan:
    """What a method decided to recompute.

    Args:
        rows: int64 [n], sorted unique prompt positions computed afresh. The question's rows are always among them; a
            plan of all T positions is full prefill.
        ranking: int32 [N], document positions, best first, or None where the method does not rank.
        scores: float32 [N], in document order, or None.
        critical_layers: layers the scores were read at.
        anchors: int32 [layers, m], positions that stood in for the context in the probe, or None.
        exact_layers: the first layers whose K and V are exact for every token; 1 where only the embeddings are.
        layer_rows: int32 [L], rows computed per layer, or None where they are `rows` everywhere.
        resume: work on the first layers that need not be done again.
        key_shift: correction of the keys that are not recomputed.
        reading: how the question and the answer read the cache.
    """

    rows: np.ndarray
    ranking: np.ndarray | None = None
    scores: np.ndarray | None = None
    critical_layers: tuple[int, ...] = ()
    anchors: np.ndarray | None = None
    exact_layers: int = 1
    layer_rows: np.ndarray | None = None
    resume: Resume | None = None
    key_shift: KeyShift | None = None
    reading: Reading = PLAIN

    def __post_init__(self) -> None:
        assert self.rows.ndim == 1 and bool(np.all(np.diff(self.rows) > 0)), "rows must be sorted and unique"
