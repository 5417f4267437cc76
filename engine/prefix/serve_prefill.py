"""Computes rows behind a filled prefix, layer by layer. Knows nothing of trees, pages or policies."""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.errors import Cancelled
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.recorder import Recorder


@torch.inference_mode()
def compute_rows(
    decoder: Decoder, ids: Tensor, start: int, cache: RequestCache, recorder: Recorder, cancelled: Callable[[], bool] = lambda: False
) -> Tensor:
    """Returns the last row [1, hidden] behind all layers, K and V of all rows written to the cache.

    The rows run as one batch, so a prefix that was computed before and the rest here are the split [0, start), [start, start + n).
    In the last layer only the last row attends: no other hidden state is read.

    Args:
        ids: int64 [n], n at least 1, at positions start .. start + n - 1; positions before `start` are filled.

    Raises Cancelled between two layers.
    """
    positions = torch.arange(start, start + ids.shape[0])
    rows, last = decoder.rows(positions), decoder.rows(positions[-1:])
    hidden, final = decoder.embed(ids), decoder.spec.num_layers - 1
    for layer in range(final + 1):
        if cancelled():
            raise Cancelled("Stopped between two layers; nothing was kept of this request.")
        with recorder.device("recompute", layer):
            if layer < final:
                hidden = decoder.run_layer(layer, hidden, rows, cache)
                continue
            decoder.write(layer, *decoder.project_kv(layer, hidden), rows, cache)
            tail = hidden[-1:]
            hidden = decoder.attend(layer, tail, decoder.project_query(layer, tail), last, cache)
    return hidden


@torch.inference_mode()
def first_logits(decoder: Decoder, hidden: Tensor, recorder: Recorder) -> Tensor:
    """Returns the float32 logits [vocabulary] of a row [1, hidden], the first token being known when it returns."""
    with recorder.device("head"):
        logits = decoder.logits(hidden)[0]
        int(logits.argmax())
    return logits
