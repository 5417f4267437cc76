"""QCAll: the question over the full cached context, attention of all layers."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.full_view import full_view_scores
from engine.fusion.plan import FusionPlan


@METHODS.register("qcall")
@dataclass(frozen=True, slots=True)
class QCAll(FusionMethod):
    """ProphetKV's rule (arXiv 2602.02579; "QCAll" of 2604.08585, figure 3): attention summed over heads, question tokens and layers.

    The sums are taken as means, which rank alike. The whole context is loaded and read by the question before anything is
    recomputed; that is its price, and it counts. ProphetKV's own ratio is 0.2.

    Args:
        ratio: share of document tokens recomputed.
        reduction: over question tokens and heads, "mean" (sum in the paper) or "max".
    """

    name: ClassVar[str] = "qcall"

    ratio: float = 0.3
    reduction: Literal["mean", "max"] = "mean"

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the most attended document tokens."""
        layers = tuple(range(context.decoder.spec.num_layers))
        scores = full_view_scores(context, layers, self.reduction)
        with context.recorder.device("select"):
            return context.ranked_plan(scores, self.ratio, critical_layers=layers)
