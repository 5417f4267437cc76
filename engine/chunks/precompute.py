"""Computes the KV of a chunk once, behind what its context says, and files it in the store."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from engine.chunks.file import StoredChunk
from engine.chunks.key import ChunkKey
from engine.chunks.store import ChunkStore
from engine.errors import Cancelled
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder

NUM_SINK_KEYS = 4


class ChunkKV(NamedTuple):
    """Keys before RoPE and values of a chunk, [L, n, Hkv, D] each, and KVzip scores float32 [L, n], on the CPU."""

    keys: Tensor
    values: Tensor
    importance: Tensor


class Prefix(NamedTuple):
    """What stands before chunks of one context: ids [p] and their KV, computed once."""

    ids: Tensor
    cache: RequestCache


def compute_prefix(decoder: Decoder, ids: Tensor) -> Prefix:
    """Returns a prefix of int64 ids [p], which may be empty, with its KV at positions 0..p-1."""
    cache = RequestCache(decoder.spec, ids.shape[0], decoder.dtype, decoder.device)
    if ids.shape[0]:
        rows, hidden = decoder.rows(torch.arange(ids.shape[0])), decoder.embed(ids)
        for layer in range(decoder.spec.num_layers):
            hidden = decoder.run_layer(layer, hidden, rows, cache)
    return Prefix(ids, cache)


def chunk_kv(decoder: Decoder, prefix: Prefix, ids: Tensor, repeat_ids: Tensor, cancelled: Callable[[], bool] = lambda: False) -> ChunkKV:
    """Returns the KV of `ids` [n] computed behind a prefix, whose own is dropped. Raises Cancelled between two layers.

    Its tokens' KVzip scores come with it (arXiv 2606.05875, 3.3.3): the largest attention, over heads and the tokens of an
    instruction to repeat the context, that a token receives from that instruction, which stands behind the chunk and whose
    KV is dropped too; the softmax runs over the first 4 tokens of the prefix (none alone), the chunk and the instruction.

    Args:
        repeat_ids: int64 [m], the instruction's tokens.
    """
    spec, start, num = decoder.spec, prefix.ids.shape[0], ids.shape[0]
    total = start + num + repeat_ids.shape[0]
    cache = RequestCache(spec, total, decoder.dtype, decoder.device)
    cache.keys[:, :start] = prefix.cache.keys
    cache.values[:, :start] = prefix.cache.values
    rows = decoder.rows(torch.arange(start, total))
    seen = torch.cat([torch.arange(min(start, NUM_SINK_KEYS)), torch.arange(start, total)]).to(decoder.device)
    asked = torch.arange(seen.shape[0] - repeat_ids.shape[0], seen.shape[0], device=decoder.device)
    own = slice(min(start, NUM_SINK_KEYS), min(start, NUM_SINK_KEYS) + num)
    hidden = decoder.embed(torch.cat([ids, repeat_ids]))
    shape = (spec.num_layers, num, spec.num_kv_heads, spec.head_dim)
    kv = ChunkKV(torch.empty(shape, dtype=decoder.dtype), torch.empty(shape, dtype=decoder.dtype), torch.empty(shape[:2]))
    for layer in range(spec.num_layers):
        if cancelled():
            raise Cancelled("Stopped while chunk caches were computed; the finished ones are kept.")
        p = decoder.project(layer, hidden)
        kv.keys[layer].copy_(p.keys[:num])
        kv.values[layer].copy_(p.values[:num])
        decoder.write(layer, p.keys, p.values, rows, cache)
        query = decoder.rotated(p.query[num:], rows.cos[num:], rows.sin[num:])
        kv.importance[layer] = decoder.ops.token_scores(query, cache.keys[layer][seen], asked, "max")[own].cpu()
        if layer < spec.num_layers - 1:
            hidden = decoder.attend(layer, hidden, p.query, rows, cache)
    return kv


def mean_kv(parts: Iterable[ChunkKV]) -> ChunkKV:
    """Returns the mean of a chunk's KV over several prefixes: what they have in common, less what is one prefix's own."""
    first, *others = parts
    for other in others:
        for total, part in zip(first, other, strict=True):
            total += part
    return ChunkKV(*(total.div_(1 + len(others)) for total in first))


class ChunkSource:
    """Gives out stored chunks of one model, computing what the store lacks.

    Args:
        prefixes: what a chunk stands behind, by the name that goes into its address: int64 ids [p], several where its KV is
            the mean behind each of them. "alone" has none.
        repeat_ids: the instruction behind which KVzip scores are taken.
    """

    def __init__(self, decoder: Decoder, store: ChunkStore, prefixes: Mapping[str, Sequence[Tensor]], repeat_ids: Tensor) -> None:
        self._decoder, self._store, self._repeat_ids = decoder, store, repeat_ids
        self._prefix_ids = {**prefixes, "alone": (torch.zeros(0, dtype=torch.int64),)}
        self._prefixes: dict[str, tuple[Prefix, ...]] = {}

    def key(self, ids: Tensor, behind: str) -> ChunkKey:
        """Returns the address of the KV of a chunk computed behind a named prefix."""
        spec = self._decoder.spec
        rope = spec.rope
        return ChunkKey(
            model=spec.name,
            revision=spec.revision,
            dtype=spec.dtype,
            rope=f"{rope.kind}:{rope.attention_scaling!r}:{','.join(f'{f:.9g}' for f in rope.inv_freq)}",
            context=behind,
            prefix_ids=tuple(torch.cat(tuple(self._prefix_ids[behind])).tolist()),
            token_ids=tuple(ids.tolist()),
            num_layers=spec.num_layers,
            num_kv_heads=spec.num_kv_heads,
            head_dim=spec.head_dim,
        )

    def get(self, ids: Tensor, behind: str) -> StoredChunk | None:
        """Returns the stored chunk, or None where it has to be computed."""
        return self._store.get(self.key(ids, behind))

    def compute(self, ids: Tensor, behind: str, cancelled: Callable[[], bool] = lambda: False) -> StoredChunk:
        """Computes and files a chunk; what that took is kept with it. Raises Cancelled."""
        if behind not in self._prefixes:
            self._prefixes[behind] = tuple(compute_prefix(self._decoder, prefix) for prefix in self._prefix_ids[behind])
        start = time.perf_counter()
        kv = mean_kv(chunk_kv(self._decoder, prefix, ids, self._repeat_ids, cancelled) for prefix in self._prefixes[behind])
        return self._store.put(self.key(ids, behind), *kv, time_s=time.perf_counter() - start)

    def system(self) -> StoredChunk:
        """Returns the KV of the system part itself, exact at position 0."""
        (ids,) = self._prefix_ids["system"]
        return self.get(ids, "alone") or self.compute(ids, "alone")
