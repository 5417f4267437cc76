"""QCFuse-CV: the second paper's rule, a compressed view by KVzip scores and several critical layers."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from engine.errors import BadRequest
from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan
from engine.fusion.probe import context_scores, run_probe


@METHODS.register("qcfuse_cv")
@dataclass(frozen=True, slots=True)
class QCFuseCV(FusionMethod):
    """The rule of arXiv 2606.05875, 3.2-3.3: anchors per layer by KVzip scores, the first 4 tokens of a chunk among them, and
    attention averaged over the three best critical layers, fewer where fewer are known for the model.

    Args:
        ratio: share of document tokens recomputed.
        anchor_ratio: share of each chunk kept in memory as anchors.
        num_layers: how many calibrated layers are scored.
        reduction: over question tokens and heads, "max" as the published code of that paper, or "mean", its later code.
    """

    name: ClassVar[str] = "qcfuse_cv"

    ratio: float = 0.3
    anchor_ratio: float = 0.10
    num_layers: int = 3
    reduction: Literal["mean", "max"] = "max"

    def __post_init__(self) -> None:
        if self.num_layers < 1:
            raise BadRequest(f"QCFuse-CV was asked to score {self.num_layers} layers; it must be at least one.")

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the best-scored document tokens and the question."""
        layers = tuple(sorted(context.critical_layers[: self.num_layers]))
        with context.recorder.device("probe"):
            probes = run_probe(context, layers, self.anchor_ratio, "kvzip")
        with context.recorder.device("select"):
            scores = torch.stack([context_scores(context, probe, self.reduction) for probe in probes]).mean(dim=0)
            anchors = probes[-1].anchors.cpu().numpy().astype("int32")
            return context.ranked_plan(scores, self.ratio, critical_layers=layers, anchors=anchors)
