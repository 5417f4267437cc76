"""QCLast: the question without its context, attention of the last layer."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan
from engine.fusion.probe import context_scores, run_probe


@METHODS.register("qclast")
@dataclass(frozen=True, slots=True)
class QCLast(FusionMethod):
    """The online part of FusionRAG (arXiv 2601.12904; "QCLast" of 2604.08585, figure 3): column sums of last-layer attention.

    The question runs behind the system part alone, through all layers, and is then scored against the stored keys of the
    last one. FusionRAG's offline part, similar chunks mixed into each chunk's cache, is not part of it.

    Args:
        ratio: share of document tokens recomputed.
        reduction: over question tokens and heads, "mean" (sum in the paper) or "max".
    """

    name: ClassVar[str] = "qclast"

    ratio: float = 0.3
    reduction: Literal["mean", "max"] = "mean"

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the document tokens that the question's last layer attends to most."""
        layer = context.decoder.spec.num_layers - 1
        with context.recorder.device("probe"):
            (probe,) = run_probe(context, (layer,), 0.0, "high")
        with context.recorder.device("select"):
            return context.ranked_plan(context_scores(context, probe, self.reduction), self.ratio, critical_layers=(layer,))
