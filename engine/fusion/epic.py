"""EPIC: recompute the first tokens of every chunk."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan


@METHODS.register("epic")
@dataclass(frozen=True, slots=True)
class Epic(FusionMethod):
    """LegoLink of EPIC (arXiv 2410.15332): each chunk's first tokens, which took the attention sink's place when it was cached.

    With `k`, the first k tokens of every chunk but an exact first one (16 and 32 in the paper, which always
    skips it). Without, the same share of
    every chunk's start, as arXiv 2604.08585 compares it: tokens are ranked by how early they stand in their chunk, in
    shares of its length, so that the budget is the other methods' to the token.

    Args:
        ratio: share of document tokens recomputed where `k` is 0.
        k: tokens per chunk; 0 for a share.
    """

    name: ClassVar[str] = "epic"

    ratio: float = 0.3
    k: int = 0

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the chunks' first tokens."""
        chunks = context.placed[1:]
        if self.k:
            firsts = [np.arange(p.start, min(p.stop, p.start + self.k)) for p in chunks if not p.is_exact]
            return context.plan(np.concatenate(firsts) if firsts else np.zeros(0, dtype=np.int64))
        shares = torch.cat([-(torch.arange(p.stop - p.start) + 1.0) / (p.stop - p.start) for p in chunks])
        ranking, chosen = context.best(shares, self.ratio)
        return context.plan(chosen, ranking=ranking)
