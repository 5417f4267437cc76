"""Ours: stored keys corrected online by the mean deviation of the recomputed ones."""

from dataclasses import dataclass, replace
from typing import ClassVar

from engine.fusion.base import SelectionContext
from engine.fusion.plan import FusionPlan, KeyShift
from engine.fusion.wrapper import WRAPPERS, Wrapper


@WRAPPERS.register("k_shift")
@dataclass(frozen=True, slots=True)
class ShiftedKeys(Wrapper):
    """In every layer that the pipeline recomputes, adds to a chunk's other keys the mean deviation of its recomputed ones.

    Args:
        beta: how much of the deviation is believed in the limit of many rows.
        kappa: rows at which half of that is believed.
    """

    label: ClassVar[str] = "k_shift"
    corrects_keys: ClassVar[bool] = True

    beta: float = 0.7
    kappa: float = 4.0

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the inner method's plan with the correction."""
        return replace(self.inner.select(context), key_shift=KeyShift(self.beta, self.kappa))
