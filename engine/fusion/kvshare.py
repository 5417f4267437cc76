"""KVShare: recompute tokens whose stored values deviate and that the context itself attends to."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.deviation import LayerOne, behind_layer_one, compute_layer_one, resumed
from engine.fusion.plan import FusionPlan
from engine.types import budget

QUERY_ROWS = 256


@METHODS.register("kvshare")
@dataclass(frozen=True, slots=True)
class KVShare(FusionMethod):
    """Reconstructed: "KV deviation weighted by initial attention weights" (arXiv 2604.08585, 4, of 2503.16525).

    Neither paper prints the formula and no code was found. Here a token's score is its squared value deviation at layer 1
    times the attention mass it receives there from all tokens at and behind it; the layers cost what they cost CacheBlend.

    Args:
        ratio: share of document tokens recomputed.
    """

    name: ClassVar[str] = "kvshare"

    ratio: float = 0.3

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the best-scored document tokens."""
        if not budget(self.ratio, context.prompt.num_doc_tokens):
            return context.plan(np.zeros(0, dtype=np.int64))
        all_tokens = compute_layer_one(context)
        with context.recorder.device("select"):
            docs = slice(context.prompt.system_len, context.prompt.question_start)
            scores = all_tokens.deviation * _received(context, all_tokens)[docs]
            plan = context.ranked_plan(scores, self.ratio, exact_layers=2)
        return resumed(context, plan, behind_layer_one(context, all_tokens, torch.from_numpy(plan.rows)))


def _received(context: SelectionContext, all_tokens: LayerOne) -> Tensor:
    """Returns float32 [T]: attention each token receives at layer 1, summed over all query tokens, mean over heads."""
    decoder, rows, num_tokens = context.decoder, all_tokens.rows, context.prompt.num_tokens
    query = decoder.rotated(decoder.project_query(1, all_tokens.hidden), rows.cos, rows.sin)
    keys, mass = context.cache.keys[1], torch.zeros(num_tokens, device=context.ids.device)
    for start in range(0, num_tokens, QUERY_ROWS):
        stop = min(num_tokens, start + QUERY_ROWS)
        at = torch.arange(start, stop, device=mass.device)
        mass[:stop] += decoder.ops.token_scores(query[start:stop], keys[:stop], at, "mean") * (stop - start)
    return mass
