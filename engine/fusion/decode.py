"""Decoding behind a filled cache: greedy or sampled, one token at a time, and teacher forcing of a known answer."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.errors import Cancelled, EngineError
from engine.fusion.steps import DecodeSteps, eager_step
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder


class Decoded(NamedTuple):
    """ids: int32 [n], the end token left out; times_s: float32 [n], seconds after the first token."""

    ids: np.ndarray
    times_s: np.ndarray


@torch.inference_mode()
def decode(
    decoder: Decoder,
    logits: Tensor,
    start: int,
    cache: RequestCache,
    max_new_tokens: int,
    temperature: float = 0.0,
    seed: int = 0,
    on_token: Callable[[list[int]], bool | None] = lambda ids: None,
    cancelled: Callable[[], bool] = lambda: False,
    end_ids: tuple[int, ...] | None = None,
    steps: DecodeSteps | None = None,
) -> Decoded:
    """Returns the answer that continues a cache filled up to `start`; logits [vocabulary] are those of its first token.

    Args:
        on_token: called with all ids so far, after each token; the answer ends with it where that returns True.
        end_ids: tokens that end the answer; the model's own unless given.
        steps: hands out the decode step; each is launched anew without it.

    Raises Cancelled between two tokens, EngineError where the model computes no numbers.
    """
    next_logits = eager_step(decoder, cache) if steps is None else steps.of(cache)
    generator = torch.Generator().manual_seed(seed)
    end_ids = decoder.spec.eos_token_ids if end_ids is None else end_ids
    require_numbers(decoder, logits)
    ids: list[int] = []
    times: list[float] = []
    begun = time.perf_counter()
    for step in range(max_new_tokens):
        token = _pick(logits, temperature, generator)
        if token in end_ids:
            break
        ids.append(token)
        times.append(time.perf_counter() - begun)
        if on_token(ids):
            break
        if cancelled():
            raise Cancelled("Stopped while the answer was written.")
        if step < max_new_tokens - 1:
            logits = next_logits(token, start + step)
    return Decoded(np.asarray(ids, dtype=np.int32), np.asarray(times, dtype=np.float32))


@torch.inference_mode()
def forced_log_probs(decoder: Decoder, logits: Tensor, answer_ids: np.ndarray, start: int, cache: RequestCache) -> Tensor:
    """Returns float32 [n + 1, vocabulary]: log-probabilities before each of n forced answer tokens and behind the last.

    The cache beyond `start` is overwritten; what stands before it is not touched.
    """
    behind = decoder.extend(torch.from_numpy(answer_ids.astype(np.int64)), start, cache)
    return torch.log_softmax(torch.cat([logits[None], behind]), dim=-1)


def require_numbers(decoder: Decoder, logits: Tensor) -> None:
    """Raises EngineError where a model's logits hold what is no number."""
    if logits.isnan().any():
        spec = decoder.spec
        raise EngineError(f"The model {spec.name!r} computes no numbers (NaN) in {spec.dtype}: its weights are damaged; fetch them again.")


def _pick(logits: Tensor, temperature: float, generator: torch.Generator) -> int:
    if temperature == 0.0:
        return int(logits.argmax())
    logits = logits.cpu().double()
    # Shifted first: divided by a temperature near 0, the largest would be infinite.
    weights = torch.softmax((logits - logits.max()) / temperature, dim=-1).float()
    return int(torch.multinomial(weights, 1, generator=generator))
