"""What a fusion method is: a frozen dataclass that chooses the rows to recompute; the pipeline does the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.chunks.anchors import AnchorBank
from engine.chunks.prefetch import ContextLoader, Placed
from engine.errors import Cancelled
from engine.model.decoder import Decoder
from engine.model.prompt import Prompt
from engine.recorder import Recorder
from engine.registry import Registry
from engine.types import FusionPlan, budget


@dataclass(frozen=True, eq=False, slots=True)
class SelectionContext:
    """All a method may look at while it chooses; what it computes here counts as its own time.

    Args:
        ids: int64 [T] on the device.
        placed: the system part and the chunks, at their places.
        critical_layers: calibrated for this model, best first.
    """

    decoder: Decoder
    prompt: Prompt
    ids: Tensor
    placed: tuple[Placed, ...]
    loader: ContextLoader
    anchors: AnchorBank
    critical_layers: tuple[int, ...]
    recorder: Recorder
    cancelled: Callable[[], bool]

    def check(self) -> None:
        """Raises Cancelled when the request's owner has stopped it; called between layers."""
        if self.cancelled():
            raise Cancelled("Stopped.")

    def plan(self, chosen: np.ndarray, **evidence: object) -> FusionPlan:
        """Returns the plan that recomputes `chosen` document positions [n] and the whole question segment."""
        question = np.arange(self.prompt.question_start, self.prompt.num_tokens)
        return FusionPlan(np.concatenate([np.sort(chosen), question]).astype(np.int64), **evidence)  # type: ignore[arg-type]

    def ranked_plan(self, scores: Tensor, ratio: float, **evidence: object) -> FusionPlan:
        """Returns the plan that recomputes the best floor(ratio N) document tokens by `scores` float32 [N]."""
        order = self.decoder.ops.rank_tokens(scores).cpu().numpy()
        ranking = (order + self.prompt.system_len).astype(np.int32)
        chosen = ranking[: budget(ratio, self.prompt.num_doc_tokens)]
        return self.plan(chosen, ranking=ranking, scores=scores.float().cpu().numpy(), **evidence)


class FusionMethod(Protocol):
    """A rule that chooses rows; its fields are its whole configuration. A `ratio` field is set by the request."""

    name: ClassVar[str]
    reads_cache: ClassVar[bool]

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the rows to recompute. Raises Cancelled, StoreError."""
        ...


METHODS: Registry[FusionMethod] = Registry("method")


def question_rows(prompt: Prompt) -> Tensor:
    """Returns int64 positions of the probe: from the question segment's start to the end of the question's words."""
    return torch.arange(prompt.question_start, prompt.question_span[1])
