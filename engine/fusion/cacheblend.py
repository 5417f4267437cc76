"""CacheBlend: recompute the tokens whose stored values deviate most at layer 1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from engine.errors import BadRequest
from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.deviation import LayerOne, behind_layer_one, compute_layer_one, resumed
from engine.fusion.plan import FusionPlan, Resume
from engine.types import budget


@METHODS.register("cacheblend")
@dataclass(frozen=True, slots=True)
class CacheBlend(FusionMethod):
    """The rule of arXiv 2405.16444, 4.3, as its published code has it: top-N by squared value deviation at layer 1.

    Layer 0 and the projections of layer 1 run on all tokens and count as selection; layer 1's K and V are then exact for
    every token. Rows are masked by their true positions (the published code masks scattered rows as if they were the last
    ones). The ratio is 0.15 in the paper and 0.16 in the code.

    Args:
        ratio: share of document tokens recomputed.
        gradual_layers: further layers over which the set shrinks by deviation (the paper's gradual filtering; its code has
            none, so 0); tokens dropped on the way keep the K and V they got.
        gradual_excess: how much larger than the budget the first set is then.
    """

    name: ClassVar[str] = "cacheblend"

    ratio: float = 0.3
    gradual_layers: int = 0
    gradual_excess: float = 1.5

    def __post_init__(self) -> None:
        if self.gradual_layers < 0 or not self.gradual_excess >= 1.0:
            raise BadRequest(
                f"CacheBlend was asked to filter over {self.gradual_layers} layers from {self.gradual_excess} times the budget; "
                "the layers must be 0 or more and the factor at least 1."
            )

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the most deviating document tokens."""
        count = budget(self.ratio, context.prompt.num_doc_tokens)
        if not count:
            return context.plan(np.zeros(0, dtype=np.int64))
        if self.gradual_layers > (most := context.decoder.spec.num_layers - 2):
            raise BadRequest(f"CacheBlend was asked to filter over {self.gradual_layers} layers; this model allows at most {most}.")
        all_tokens = compute_layer_one(context)
        if self.gradual_layers:
            return self._filtered(context, all_tokens, count)
        with context.recorder.device("select"):
            plan = context.ranked_plan(all_tokens.deviation, self.ratio, exact_layers=2)
        return resumed(context, plan, behind_layer_one(context, all_tokens, torch.from_numpy(plan.rows)))

    def _filtered(self, context: SelectionContext, all_tokens: LayerOne, count: int) -> FusionPlan:
        """Returns the plan of rows that were among the most deviating in every one of the filtering layers."""
        decoder, prompt, counts = context.decoder, context.prompt, {}
        most = min(prompt.num_doc_tokens, round(count * self.gradual_excess))
        sizes = np.linspace(most, count, self.gradual_layers + 1).round().astype(int).tolist()
        best = decoder.ops.rank_tokens(all_tokens.deviation)[: sizes[0]].sort().values + prompt.system_len
        question = torch.arange(prompt.question_start, prompt.num_tokens, device=best.device)
        positions = torch.cat([best, question])
        hidden = behind_layer_one(context, all_tokens, positions).hidden
        counts[1] = positions.shape[0]
        context.loader.start(first_layer=2)
        for layer, size in enumerate(sizes[1:], start=2):
            context.check()
            context.loader.place(layer)
            with context.recorder.device("recompute", layer):
                positions, hidden = self._filter(context, layer, positions, hidden, size)
            counts[layer] = positions.shape[0]
        rows, scores = positions.cpu().numpy().astype(np.int64), all_tokens.deviation.cpu().numpy()
        plan = FusionPlan(rows, scores=scores, exact_layers=2)
        return resumed(context, plan, Resume(2 + self.gradual_layers, hidden), counts)

    def _filter(self, context: SelectionContext, layer: int, at: Tensor, hidden: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Runs rows through a layer and returns the positions and states of the `size` most deviating and the question's."""
        decoder, cache = context.decoder, context.cache
        p, rows = decoder.project(layer, hidden), decoder.rows(at)
        num_docs = int((at < context.prompt.question_start).sum())
        deviation = (p.values[:num_docs] - cache.values[layer][at[:num_docs]]).float().square().sum(dim=(1, 2))
        decoder.write(layer, p.keys, p.values, rows, cache)
        kept = decoder.ops.rank_tokens(deviation)[:size].sort().values
        kept = torch.cat([kept, torch.arange(num_docs, at.shape[0], device=kept.device)])
        return at[kept], decoder.attend(layer, hidden[kept], p.query[kept], decoder.rows(at[kept]), cache)
