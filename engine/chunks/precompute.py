"""Computes the KV of a chunk once, behind the fixed system part or alone, and files it in the store."""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from engine.chunks.file import StoredChunk
from engine.chunks.key import ChunkKey
from engine.chunks.store import ChunkStore
from engine.errors import Cancelled
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.types import ChunkContext


class ChunkKV(NamedTuple):
    """Keys before RoPE and values of a chunk, [L, n, Hkv, D] each, on the CPU."""

    keys: Tensor
    values: Tensor


class ComputedChunk(NamedTuple):
    """A chunk just computed and filed, and the seconds both took."""

    chunk: StoredChunk
    time_s: float


def chunk_kv(decoder: Decoder, prefix_ids: Tensor, ids: Tensor, cancelled: Callable[[], bool] = lambda: False) -> ChunkKV:
    """Returns the KV of `ids` [n] computed behind `prefix_ids` [p] (may be empty); the prefix's own is dropped.

    Raises Cancelled between two layers.
    """
    spec, start = decoder.spec, prefix_ids.shape[0]
    total = start + ids.shape[0]
    cache = RequestCache(spec, total, decoder.dtype, decoder.device)
    rows = decoder.rows(torch.arange(total))
    hidden = decoder.embed(torch.cat([prefix_ids, ids]))
    shape = (spec.num_layers, total - start, spec.num_kv_heads, spec.head_dim)
    kv = ChunkKV(torch.empty(shape, dtype=decoder.dtype), torch.empty(shape, dtype=decoder.dtype))
    for layer in range(spec.num_layers):
        if cancelled():
            raise Cancelled("Stopped while chunk caches were computed; the finished ones are kept.")
        p = decoder.project(layer, hidden)
        kv.keys[layer].copy_(p.keys[start:])
        kv.values[layer].copy_(p.values[start:])
        if layer < spec.num_layers - 1:
            decoder.write(layer, p.keys, p.values, rows, cache)
            hidden = decoder.attend(layer, hidden, p.query, rows, cache)
    return kv


class ChunkSource:
    """Gives out stored chunks of one model, computing what the store lacks."""

    def __init__(self, decoder: Decoder, store: ChunkStore, system_ids: Tensor) -> None:
        self._decoder, self._store, self._system_ids = decoder, store, system_ids

    def key(self, ids: Tensor, context: ChunkContext) -> ChunkKey:
        """Returns the address of a chunk's KV."""
        spec = self._decoder.spec
        rope = spec.rope
        return ChunkKey(
            model=spec.name,
            revision=spec.revision,
            dtype=spec.dtype,
            rope=f"{rope.kind}:{rope.attention_scaling!r}:{','.join(f'{f:.9g}' for f in rope.inv_freq)}",
            context=context,
            prefix_ids=tuple(self._system_ids.tolist()) if context == "system" else (),
            token_ids=tuple(ids.tolist()),
            num_layers=spec.num_layers,
            num_kv_heads=spec.num_kv_heads,
            head_dim=spec.head_dim,
        )

    def get(self, ids: Tensor, context: ChunkContext) -> StoredChunk | None:
        """Returns the stored chunk, or None where it has to be computed."""
        return self._store.get(self.key(ids, context))

    def compute(self, ids: Tensor, context: ChunkContext, cancelled: Callable[[], bool] = lambda: False) -> ComputedChunk:
        """Computes and files a chunk, and says how long that took. Raises Cancelled."""
        start = time.perf_counter()
        prefix = self._system_ids if context == "system" else self._system_ids[:0]
        kv = chunk_kv(self._decoder, prefix, ids, cancelled)
        return ComputedChunk(self._store.put(self.key(ids, context), kv.keys, kv.values), time.perf_counter() - start)

    def system(self) -> StoredChunk:
        """Returns the KV of the system part itself, exact at position 0."""
        found = self.get(self._system_ids, "alone")
        return found or self.compute(self._system_ids, "alone").chunk
