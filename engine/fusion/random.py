"""Random choice: what every rule has to beat."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from engine.errors import BadRequest
from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan
from engine.types import budget

MAX_SEED = 2**63


@METHODS.register("random")
@dataclass(frozen=True, slots=True)
class RandomTokens(FusionMethod):
    """Document tokens in a random order, the same for the same seed and length ("Random" of arXiv 2604.08585, figure 3).

    Args:
        ratio: share of document tokens recomputed.
        seed: of the order.
    """

    name: ClassVar[str] = "random"

    ratio: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        if not -MAX_SEED <= self.seed < MAX_SEED:
            raise BadRequest(f"The seed of the random order is {self.seed}; it must be a whole number below {MAX_SEED:,}.")

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the first tokens of the order."""
        num = context.prompt.num_doc_tokens
        order = torch.randperm(num, generator=torch.Generator().manual_seed(self.seed)).numpy()
        ranking = (order + context.prompt.system_len).astype("int32")
        return context.plan(ranking[: budget(self.ratio, num)], ranking=ranking)
