"""Direct reuse: stored chunk caches as they are, only the question is computed."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan


@METHODS.register("reuse")
@dataclass(frozen=True, slots=True)
class DirectReuse(FusionMethod):
    """Recomputes no document token ("Full Reuse" of arXiv 2604.08585, figure 3): fastest, blind between chunks."""

    name: ClassVar[str] = "reuse"

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the question's rows alone."""
        return context.plan(np.zeros(0, dtype=np.int64))
