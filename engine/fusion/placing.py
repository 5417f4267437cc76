"""How a layer's stored KV and its fresh rows get into a request's cache. Knows nothing of methods or of what is computed from it."""

from typing import Protocol

import torch
from torch import Tensor

from engine.chunks.prefetch import ContextLoader
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder, Rows
from kernels.batch import KeysValues, merge_sources


class Placing(Protocol):
    """Fills one request's cache layer by layer: first what is stored, then the fresh rows."""

    def bring(self, layer: int) -> None:
        """Waits for the layer's stored KV. Raises StoreError."""

    def write(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Completes the layer with the fresh K, not rotated, and V of the request's rows, [R, Hkv, D] each."""


class InTwoSteps:
    """Stored rows are in their place before the fresh ones are computed: what a method needs that looks at them, and a CPU's way."""

    def __init__(self, decoder: Decoder, loader: ContextLoader, rows: Rows, cache: RequestCache) -> None:
        self._decoder, self._loader, self._rows, self._cache = decoder, loader, rows, cache

    def bring(self, layer: int) -> None:
        """Puts the stored rows into the cache, keys rotated. Raises StoreError."""
        self._loader.place(layer)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Overwrites the rows."""
        self._decoder.write(layer, keys, values, self._rows, self._cache)


class InOnePass:
    """Stored and fresh rows go into the cache together, each read once and written once, by the kernel that rotates on the way.

    A layer of which the cache has a part already, such as one whose keys were scored, takes the two steps.

    Args:
        resident_len: the first tokens, which are in the cache from the start and stay.
        rope: int64 [T], rotary positions; None where they are those in the cache.
    """

    def __init__(
        self, decoder: Decoder, loader: ContextLoader, rows: Rows, cache: RequestCache, resident_len: int, rope: Tensor | None = None
    ) -> None:
        self._decoder, self._loader, self._cache, self._resident_len = decoder, loader, cache, resident_len
        self._steps = InTwoSteps(decoder, loader, rows, cache)
        # Behind the context all rows are fresh, up to the last.
        num_tokens = rows.set.blocks[-1].key_end
        cos, sin = decoder.rope(torch.arange(num_tokens) if rope is None else rope[:num_tokens])
        self._cos, self._sin = cos[resident_len:, 0], sin[resident_len:, 0]
        self._source = merge_sources(rows.set.positions, num_tokens)[resident_len:]
        self._stored: KeysValues | None = None

    def bring(self, layer: int) -> None:
        """Waits for the stored rows, which stay where they are until the fresh ones are there. Raises StoreError."""
        self._stored = self._loader.take(layer)
        if self._stored is None:
            self._steps.bring(layer)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Puts both into the cache and hands the stored rows' memory back."""
        if self._stored is None:
            self._steps.write(layer, keys, values)
            return
        first = self._resident_len
        stored = KeysValues(*(rows[first:] for rows in self._stored))
        cache = KeysValues(self._cache.keys[layer, first:], self._cache.values[layer, first:])
        self._decoder.ops.rotate_scatter_keys(stored, KeysValues(keys, values), self._source, self._cos, self._sin, cache, None)
        self._loader.put(layer)
        self._stored = None
