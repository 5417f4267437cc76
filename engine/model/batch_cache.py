"""The KV of several requests in one allocation, each request's positions one behind the other, so that one kernel reads them all."""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from engine.model.cache import PLAIN, RequestCache
from engine.model.spec import ModelSpec


class CacheShare(RequestCache):
    """A cache over memory that is there already, such as one request's positions in a `BatchCache`.

    Args:
        keys, values: [L, capacity, Hkv, D] each, the keys laid out head by head as a cache's own.
    """

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        # Not the base's way, which takes memory of its own.
        self.keys, self.values, self.reading = keys, values, PLAIN


class BatchCache:
    """Caches of B requests, [L, sum of capacities, Hkv, D] each of K and V; no position belongs to two of them.

    Args:
        capacities: positions of each request, those of its answer included.

    Attributes:
        starts: the first position of each request.
        shares: the cache of each request.
    """

    def __init__(self, spec: ModelSpec, capacities: Sequence[int], dtype: torch.dtype, device: torch.device) -> None:
        whole = RequestCache(spec, sum(capacities), dtype, device)
        self.keys, self.values = whole.keys, whole.values
        self.starts = tuple(accumulate(capacities[:-1], initial=0))
        spans = [slice(start, start + size) for start, size in zip(self.starts, capacities, strict=True)]
        self.shares = tuple(CacheShare(self.keys[:, at], self.values[:, at]) for at in spans)
