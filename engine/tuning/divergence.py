"""KL to full prefill of methods on one prepared request: what fitted tables are judged by, without answers and times."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from engine import metrics
from engine.chunks.prefetch import Placed
from engine.fusion.base import FusionMethod
from engine.fusion.decode import forced_log_probs
from engine.fusion.full import FullPrefill
from engine.model.prompt import Prompt
from engine.runtime import Runtime


class Reference(NamedTuple):
    """What full prefill says of a request's gold answer. answer_ids: int64 [n]; log_probs: float32 [n + 1, vocabulary]."""

    prompt: Prompt
    answer_ids: np.ndarray
    log_probs: Tensor


def full_reference(runtime: Runtime, prompt: Prompt, answer: str) -> Reference:
    """Returns the reference of a prompt. Raises Cancelled, BadRequest."""
    answer_ids = runtime.prompts.tokenize(answer).ids
    return Reference(prompt, answer_ids, _log_probs(runtime, FullPrefill(), prompt, (), answer_ids))


def kl_to_full(runtime: Runtime, method: FusionMethod, placed: Sequence[Placed], reference: Reference) -> float:
    """Returns the mean KL(full || method), nats, over the positions of the gold answer and its end.

    Args:
        placed: the request's chunks as the method reads them, the system part first.
    """
    return metrics.mean_kl(reference.log_probs, _log_probs(runtime, method, reference.prompt, placed, reference.answer_ids))


def _log_probs(runtime: Runtime, method: FusionMethod, prompt: Prompt, placed: Sequence[Placed], answer_ids: np.ndarray) -> Tensor:
    cache = runtime.pool.get("method", prompt.num_tokens + len(answer_ids) + 1)
    logits = runtime.pipeline.prefill(method, prompt, placed, cache).logits
    return forced_log_probs(runtime.decoder, logits, answer_ids, prompt.num_tokens, cache)
