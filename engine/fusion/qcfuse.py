"""QCFuse: the query, grounded by anchors, picks at a critical layer the tokens worth recomputing."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.chunks.anchors import AnchorRule
from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan
from engine.fusion.probe import context_scores, run_probe


@METHODS.register("qcfuse")
@dataclass(frozen=True, slots=True)
class QCFuse(FusionMethod):
    """The rule of the demo paper (arXiv 2604.08585, 3): one critical layer, attention averaged over heads, global top-N.

    Args:
        ratio: share of document tokens recomputed.
        anchor_ratio: share of each chunk kept in memory as anchors (0.10 in 2606.05875; the demo paper gives none).
        anchor_rule: "high" key norms first, as the demo paper says; "low" as the key-norm literature has it; "kvzip".
        critical_layer: 0-based; -1 takes the calibrated one of the model.
        reduction: over question tokens and heads, "mean" (the paper's wording) or "max" (its later code).
    """

    name: ClassVar[str] = "qcfuse"

    ratio: float = 0.3
    anchor_ratio: float = 0.10
    anchor_rule: AnchorRule = "high"
    critical_layer: int = -1
    reduction: Literal["mean", "max"] = "mean"

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the best-scored document tokens and the question."""
        layer = context.layer(self.critical_layer)
        with context.recorder.device("probe"):
            (probe,) = run_probe(context, (layer,), self.anchor_ratio, self.anchor_rule)
        with context.recorder.device("select"):
            scores = context_scores(context, probe, self.reduction)
            return context.ranked_plan(scores, self.ratio, critical_layers=(layer,), anchors=probe.anchors.cpu().numpy().astype("int32"))
