"""APE: stored caches side by side at the same positions, read through a temperature and a scale."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from engine.fusion.base import METHODS, FusionMethod, SelectionContext
from engine.fusion.plan import FusionPlan
from engine.model.cache import Reading
from engine.model.prompt import Prompt
from engine.types import ChunkContext


@METHODS.register("ape")
@dataclass(frozen=True, slots=True)
class Ape(FusionMethod):
    """Adaptive Parallel Encoding (arXiv 2502.05431, 4): no token is recomputed.

    Chunks are computed behind the same prefix, the system part, and share its end as their start: all stand at the same
    rotary positions, the question behind the longest. Attention to the context is sharpened by a temperature, and its
    log-sum-exp is scaled before it is weighed against that of the prefix, the question and the answer, as in the paper's
    listing; its published code also multiplies that log-sum-exp by the temperature.

    Args:
        temperature, scale: the paper chooses both below 1 per data set; 0.9 is in the range it reports.
        positions: "parallel" as in the paper, or "request", one chunk behind the other.
    """

    name: ClassVar[str] = "ape"
    chunk_context: ClassVar[ChunkContext | None] = "system"
    reweighs: ClassVar[bool] = True

    temperature: float = 0.9
    scale: float = 0.9
    positions: Literal["parallel", "request"] = "parallel"

    def rope_positions(self, prompt: Prompt) -> np.ndarray | None:
        """Returns int64 [T]: every chunk from the end of the system part, the question behind the longest."""
        if self.positions == "request":
            return None
        chunks = [np.arange(stop - start) + prompt.system_len for start, stop in prompt.chunk_spans]
        behind = np.arange(prompt.num_tokens - prompt.question_start) + prompt.question_start + _offset(prompt)
        return np.concatenate([np.arange(prompt.system_len), *chunks, behind])

    def select(self, context: SelectionContext) -> FusionPlan:
        """Returns the plan of the question's rows and of how they read the context."""
        prompt = context.prompt
        offset = 0 if self.positions == "request" else _offset(prompt)
        reading = Reading(prompt.system_len, prompt.question_start, self.temperature, self.scale, offset)
        return context.plan(np.zeros(0, dtype=np.int64), reading=reading)


def _offset(prompt: Prompt) -> int:
    """Returns what a position behind the context loses when all chunks start together."""
    return max(stop - start for start, stop in prompt.chunk_spans) - prompt.num_doc_tokens
