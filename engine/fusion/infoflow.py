"""InfoFlow: the norm of the question's attention over the full cached context at the last layers."""

from dataclasses import dataclass
from typing import ClassVar

from engine.errors import BadRequest
from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.full_view import full_view_scores
from engine.fusion.plan import FusionPlan


@METHODS.register("infoflow")
@dataclass(frozen=True, slots=True)
class InfoFlow(FusionMethod):
    """The attention-norm rule of InfoFlow KV (arXiv 2603.05353) under globally consistent rotary positions.

    Attention is averaged over heads; a token's score is the L2 norm of what it receives over the question tokens, averaged
    over the last two layers, as in the published code. Chunks stand at their places of the request; the paper's
    reordering of chunks is left out, since every method here gets the same token ids. Its ratio is 0.15.

    Args:
        ratio: share of document tokens recomputed.
        num_layers: how many of the last layers are scored.
    """

    name: ClassVar[str] = "infoflow"

    ratio: float = 0.15
    num_layers: int = 2

    def __post_init__(self) -> None:
        if self.num_layers < 1:
            raise BadRequest(f"InfoFlow was asked to score {self.num_layers} layers; it must be at least one.")

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the document tokens with the largest attention norms."""
        last = context.decoder.spec.num_layers
        layers = tuple(range(max(0, last - self.num_layers), last))
        scores = full_view_scores(context, layers, "norm")
        with context.recorder.device("select"):
            return context.ranked_plan(scores, self.ratio, critical_layers=layers)
