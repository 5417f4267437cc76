"""Which float32 products of the CPU path oneDNN does and which torch's own: timed once a process, as processors differ.

oneDNN's time over torch's own, in separate timings of the bundled model's sizes (576 wide, 9 heads of 64) with two threads:

    processor                         weights, by rows                             attention
    AMD Zen 4, AVX-512                34 to 2,483: .42 to .48                      .5 to .7
    AMD Zen 3, AVX2                   up to 256: .33 to .96; from 512: 1.05-1.14   1.5 to 1.7
    Intel Sapphire Rapids, AVX-512    1: 1.2; 40: .8 to 1.1; from 128: .9 to 1.1   1.2 to 1.6

The trial below has itself been watched on the last one alone: 1.06 to 1.17 for the weights, 1.0 (one thread) to 1.3 for attention.
"""

import functools
import math
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F

from kernels.attention import attention_by_products, attention_by_torch
from kernels.onednn import has_onednn, onednn_product, packed
from kernels.rows import row_set

# Chosen by name, nothing is timed: processes that have to agree to the last bit do so on a busy machine too.
VARIABLE, CHOICES = "FUSESCOPE_PRODUCTS", ("auto", "torch", "onednn")
_REPEATS = 7
_NUM_WEIGHTS = 8
# Well below what the trial gave on Sapphire Rapids, so that a busy machine does not decide otherwise from one process to the next.
_WEIGHTS_BELOW, _ATTENTION_BELOW = 0.95, 0.85


class Products(NamedTuple):
    """Whether oneDNN multiplies with the weights, laid out for it once, and inside attention."""

    weights: bool
    attention: bool

    def __str__(self) -> str:
        by = {True: "oneDNN", False: "torch"}
        return f"weights by {by[self.weights]}, attention by {by[self.attention]}"


@functools.cache
def fastest_products() -> Products:
    """Returns what is faster here, from a trial of a third of a second; where oneDNN cannot be had, torch's own.

    What FUSESCOPE_PRODUCTS names is taken untried, save for an oneDNN that is not there.
    """
    wanted = os.environ.get(VARIABLE) or CHOICES[0]
    if wanted == "torch" or not has_onednn():
        return Products(weights=False, attention=False)
    if wanted == "onednn":
        return Products(weights=True, attention=True)
    with torch.inference_mode():
        return Products(weights=_weights_ratio() < _WEIGHTS_BELOW, attention=_attention_ratio() < _ATTENTION_BELOW)


def _weights_ratio() -> float:
    """Returns oneDNN's time over torch's own, the geometric mean of one row (decode) and of many (prefill)."""
    # More bytes than a core's caches hold, as the weights of a model are when one row is multiplied.
    plain = [torch.full((3072, 576), 0.01) for _ in range(_NUM_WEIGHTS)]
    laid_out = [packed(weight) for weight in plain]
    one, many = torch.ones(1, 576), torch.ones(512, 576)
    decode = _ratio(lambda: [onednn_product(one, weight) for weight in laid_out], lambda: [F.linear(one, weight) for weight in plain])
    prefill = _ratio(lambda: onednn_product(many, laid_out[0]), lambda: F.linear(many, plain[0]))
    return math.sqrt(decode * prefill)


def _attention_ratio() -> float:
    rows = row_set(torch.arange(256, 768), 3, torch.float32)
    query, keys, values = torch.ones(512, 9, 64), torch.ones(768, 3, 64), torch.ones(768, 3, 64)
    return _ratio(lambda: attention_by_products(query, keys, values, rows), lambda: attention_by_torch(query, keys, values, rows))


def _ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Returns the first's shortest time over the second's, run in turn; the first round warms up."""
    times = [(_time_s(ours), _time_s(theirs)) for _ in range(1 + _REPEATS)][1:]
    return min(first for first, _ in times) / min(second for _, second in times)


def _time_s(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
