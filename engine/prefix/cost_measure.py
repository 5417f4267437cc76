"""Times prefills of one model at a few prompt lengths: what a modelled time to first token is made of. Knows no files."""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from engine.errors import Cancelled
from engine.model.cache import CachePool
from engine.model.decoder import Decoder
from engine.prefix.serve_prefill import compute_rows, first_logits
from engine.recorder import Recorder

LENGTHS, ROUNDS, SLOT = (128, 256, 512, 1024), 3, "prefill cost"


def prefill_times(
    decoder: Decoder,
    caches: CachePool,
    progress: Callable[[float], None] = lambda share: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[int, tuple[float, ...]]:
    """Returns by prompt length the seconds of each timed prefill, from the embedding to the first token. Raises Cancelled.

    Lengths take turns, so that a machine that slows down slows all of them; the longest runs once uncounted before. A model of a short
    context is timed at the lengths it can read, at a quarter and the whole of its context at least.
    """
    most = decoder.spec.max_context
    lengths = sorted({length for length in LENGTHS if length <= most} | ({most // 4, most} if most < LENGTHS[1] else set()))
    order = [lengths[-1], *(length for _ in range(ROUNDS) for length in lengths)]
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, decoder.spec.vocab_size, lengths[-1]))
    times: dict[int, list[float]] = {length: [] for length in lengths}
    for done, length in enumerate(order):
        if cancelled():
            raise Cancelled("Stopped while the model's prefill was timed; nothing was kept.")
        cache, recorder = caches.get(SLOT, length), Recorder(decoder.device)
        begun = time.perf_counter()
        first_logits(decoder, compute_rows(decoder, ids[:length], 0, cache, recorder, cancelled), recorder)
        if done:
            times[length].append(time.perf_counter() - begun)
        progress((done + 1) / len(order))
    return {length: tuple(found) for length, found in times.items()}


def medians(times: dict[int, tuple[float, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns lengths int64 [n] and their median seconds float64 [n]."""
    return np.array(list(times)), np.array([statistics.median(found) for found in times.values()])
