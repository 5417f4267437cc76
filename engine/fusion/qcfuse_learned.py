"""QCFuse with learned heads: ours, beyond the papers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from engine.errors import BadRequest
from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.deviation import behind_layer_one, compute_layer_one, resumed
from engine.fusion.plan import FusionPlan
from engine.fusion.probe import context_head_scores, run_probe
from engine.types import budget


@METHODS.register("qcfuse_learned")
@dataclass(frozen=True, slots=True)
class QCFuseLearned(FusionMethod):
    """Attention of all late layers, each head weighed as fitted offline, times the deviation of layer 1's values.

    A token matters when the question attends to it and its stored KV is wrong. Head weights are fitted once per model to the
    gradient of KL by how much of the true KV a token gets (`python -m engine.model.fit_heads`). The price is a probe through
    all layers, the keys of all scored layers before anything else, and layer 0 on all tokens; layer 1 becomes exact with it.
    Chunks that are exact, the first behind the system part, come last whatever their scores.

    Args:
        ratio: share of document tokens recomputed.
        anchor_ratio: share of each chunk kept in memory as anchors, highest key norms first.
        use_deviation: whether scores are multiplied by the deviation; without it layer 0 is not run on all tokens.
    """

    name: ClassVar[str] = "qcfuse_learned"

    ratio: float = 0.3
    anchor_ratio: float = 0.10
    use_deviation: bool = True

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the best-scored document tokens. Raises BadRequest where no weights were fitted."""
        fitted = context.head_weights
        if fitted is None:
            raise BadRequest(
                "No head weights were fitted for this model; run python -m engine.model.fit_heads or leave out qcfuse_learned."
            )
        if not budget(self.ratio, context.prompt.num_doc_tokens):
            return context.plan(np.zeros(0, dtype=np.int64))
        with context.recorder.device("probe"):
            probes = run_probe(context, fitted.layers, self.anchor_ratio, "high")
        with context.recorder.device("select"):
            scores = torch.zeros(context.prompt.num_doc_tokens, device=context.ids.device)
            for probe in probes:
                scores += fitted.of(probe.layer).to(scores.device) @ context_head_scores(context, probe)
        # Behind the scores: it replaces layer 1's stored keys, which they are read from.
        all_tokens = compute_layer_one(context) if self.use_deviation else None
        with context.recorder.device("select"):
            if all_tokens:
                scores *= all_tokens.deviation.sqrt()
            plan = context.ranked_plan(
                scores,
                self.ratio,
                last=_exact_tokens(context),
                critical_layers=fitted.layers,
                anchors=probes[-1].anchors.cpu().numpy().astype("int32"),
                exact_layers=2 if all_tokens else 1,
            )
        if not all_tokens:
            return plan
        return resumed(context, plan, behind_layer_one(context, all_tokens, torch.from_numpy(plan.rows)))


def _exact_tokens(context: SelectionContext) -> torch.Tensor:
    """Returns bool [N], tokens whose stored KV is what full prefill would give."""
    return torch.cat([torch.full((p.stop - p.start,), p.is_exact) for p in context.placed[1:]]).to(context.ids.device)
