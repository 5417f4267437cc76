"""Full prefill: every token of the prompt is computed, nothing stored is used. The reference of all others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan


@METHODS.register("full")
@dataclass(frozen=True, slots=True)
class FullPrefill(FusionMethod):
    """Recomputes all T rows, the system part included ("Full Comp" of arXiv 2604.08585, figure 3).

    Behind an exact prefix that is in the cache already, as a server with a prefix cache does, all rows that are not.
    """

    name: ClassVar[str] = "full"
    reads_cache: ClassVar[bool] = False

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of all positions that are not in the cache."""
        return FusionPlan(np.arange(context.resident_len, context.prompt.num_tokens, dtype=np.int64))
