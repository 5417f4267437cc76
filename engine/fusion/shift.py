"""Online correction of stored keys by what the recomputed rows of the same chunk reveal."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.chunks.prefetch import Placed
from engine.fusion.plan import KeyShift
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder


class KeyShifter:
    """Adds to the stored keys of every chunk the mean deviation of its recomputed keys, per KV head and channel, before RoPE.

    A chunk computed apart from its neighbours has keys with a systematic error; the recomputed rows are a sample of it. A
    chunk without recomputed rows, and one that is exact, stays as it is. Deviations are taken before the rotary embedding,
    where one vector holds for every position.
    """

    def __init__(self, decoder: Decoder, placed: Sequence[Placed], positions: Tensor, cache: RequestCache, shift: KeyShift) -> None:
        self._decoder, self._cache = decoder, cache
        chunks = [p for p in placed if not p.is_exact]
        bounds = torch.tensor([[p.start, p.stop] for p in chunks]).reshape(-1, 2)
        starts = torch.searchsorted(positions, bounds[:, 0].contiguous()).tolist()
        stops = torch.searchsorted(positions, bounds[:, 1].contiguous()).tolist()
        touched = [(p, a, b) for p, a, b in zip(chunks, starts, stops, strict=True) if a < b]
        self._chunks = [(p.start, p.stop, a, b, shift.beta * (b - a) / (b - a + shift.kappa)) for p, a, b in touched]
        self._positions = positions.to(decoder.device)
        self._row_tables = decoder.rope(self._positions)
        context = max((p.stop for p in placed), default=0)
        self._tables = decoder.rope(torch.arange(context, device=decoder.device))

    def apply(self, layer: int, fresh: Tensor) -> None:
        """Shifts one layer's stored keys in the cache; fresh: [R, Hkv, D], the rows' keys before RoPE, not yet written."""
        cached = self._cache.keys[layer]
        deviation = fresh - self._decoder.unrotated(cached[self._positions], *self._row_tables)
        cos, sin = self._tables
        for start, stop, first, last, weight in self._chunks:
            mean = deviation[first:last].mean(dim=0, keepdim=True) * weight
            cached[start:stop] += self._decoder.rotated(mean.expand(stop - start, -1, -1), cos[start:stop], sin[start:stop])
