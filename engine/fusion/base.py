"""What a fusion method is: a frozen dataclass that chooses the rows to recompute; the pipeline does the rest."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from engine.chunks.anchors import AnchorBank
from engine.chunks.prefetch import ContextLoader, Placed, resident_len
from engine.errors import BadRequest, Cancelled
from engine.fusion.plan import FusionPlan
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.model.head_weights import HeadWeights
from engine.model.prompt import Prompt
from engine.recorder import Recorder
from engine.registry import Registry, field_names
from engine.types import ChunkContext, budget


@dataclass(frozen=True, eq=False, slots=True)
class SelectionContext:
    """All a method may look at while it chooses; what it computes here counts as its own time.

    Args:
        ids: int64 [T] on the device.
        placed: the system part and the chunks, at their places.
        cache: the request's; a method that fills layers of it says so in its plan.
        critical_layers: calibrated for this model, best first.
        head_weights: fitted for this model, or None.
    """

    decoder: Decoder
    prompt: Prompt
    ids: Tensor
    placed: tuple[Placed, ...]
    cache: RequestCache
    loader: ContextLoader
    anchors: AnchorBank
    critical_layers: tuple[int, ...]
    head_weights: HeadWeights | None
    recorder: Recorder
    cancelled: Callable[[], bool]

    @property
    def resident_len(self) -> int:
        """Returns how many of the first tokens were in the cache, exact, before the method was asked."""
        return resident_len(self.placed)

    def check(self) -> None:
        """Raises Cancelled when the request's owner has stopped it; called between layers."""
        if self.cancelled():
            raise Cancelled("Stopped.")

    def layer(self, layer: int) -> int:
        """Returns a layer a method asks for, the best calibrated one for -1. Raises BadRequest outside the model."""
        chosen = self.critical_layers[0] if layer < 0 else layer
        last = self.decoder.spec.num_layers - 1
        if chosen > last:
            raise BadRequest(f"The critical layer is {chosen}; the model has layers 0 to {last}.")
        return chosen

    def plan(self, chosen: np.ndarray, **evidence: object) -> FusionPlan:
        """Returns the plan that recomputes `chosen` document positions [n] and the whole question segment."""
        question = np.arange(self.prompt.question_start, self.prompt.num_tokens)
        return FusionPlan(np.concatenate([np.sort(chosen), question]).astype(np.int64), **evidence)  # type: ignore[arg-type]

    def ranked_plan(self, scores: Tensor, ratio: float, last: Tensor | None = None, **evidence: object) -> FusionPlan:
        """Returns the plan that recomputes the best floor(ratio N) document tokens by `scores` float32 [N], none negative.

        Args:
            last: bool [N], tokens that come behind all others whatever their score.
        """
        ranking, chosen = self.best(scores if last is None else scores.masked_fill(last, -1.0), ratio)
        return self.plan(chosen, ranking=ranking, scores=scores.float().cpu().numpy(), **evidence)

    def best(self, scores: Tensor, ratio: float) -> tuple[np.ndarray, np.ndarray]:
        """Returns all document positions, best first, int32 [N], and those within the budget of a ratio."""
        order = self.decoder.ops.rank_tokens(scores).cpu().numpy()
        ranking = (order + self.prompt.system_len).astype(np.int32)
        return ranking, ranking[: budget(ratio, self.prompt.num_doc_tokens)]


class FusionMethod(ABC):
    """A rule that chooses rows; its fields are its whole configuration.

    The request sets a field `ratio`, and a field `seed`, where a method has them. Class attributes say what holds for it:

        reads_cache: it reads stored chunks; full prefill does not.
        chunk_context: what the chunks it reads must have seen, None for what the request says.
        corrects_keys: keys that are not recomputed may differ from the stored ones.
        reweighs: the context is read in another way than full prefill would, so nothing makes it exact.
    """

    name: ClassVar[str]
    reads_cache: ClassVar[bool] = True
    chunk_context: ChunkContext | None = None
    corrects_keys: ClassVar[bool] = False
    reweighs: ClassVar[bool] = False

    @abstractmethod
    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the rows to recompute. Raises Cancelled, StoreError, BadRequest."""

    def params(self) -> dict[str, bool | float | int | str]:
        """Returns the configuration, field by field."""
        return {field: getattr(self, field) for field in field_names(type(self))}

    def rope_positions(self, prompt: Prompt) -> np.ndarray | None:
        """Returns int64 [T], the rotary positions of the prompt's tokens, None where they are those of the prompt."""
        return None


METHODS: Registry[FusionMethod] = Registry("method")


def question_rows(prompt: Prompt) -> Tensor:
    """Returns int64 positions of the probe: from the question segment's start to the end of the question's words."""
    return torch.arange(prompt.question_start, prompt.question_span[1])
