"""Anchor tokens: the few KV pairs per chunk that stand in for the whole context while the query is probed."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from engine.chunks.file import StoredChunk
from engine.chunks.prefetch import Placed
from engine.model.decoder import Decoder

AnchorRule = Literal["high", "low", "kvzip"]
# Always among the anchors by KVzip scores: the first tokens of a chunk took the attention sink's place (2606.05875, 3.3.3).
NUM_SINKS = 4


class Anchors(NamedTuple):
    """positions: int64 [layers, m], sorted per layer; keys (rotated), values: [layers, m, Hkv, D] on the device."""

    positions: Tensor
    keys: Tensor
    values: Tensor


class _ChunkAnchors(NamedTuple):
    index: Tensor
    keys: Tensor
    values: Tensor


def anchor_index(scores: Tensor, ratio: float) -> Tensor:
    """Returns int64 [layers, ceil(ratio n)], sorted: each layer's tokens of highest score [layers, n]; ties by position."""
    count = min(scores.shape[1], math.ceil(ratio * scores.shape[1] - 1e-9))
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices
    return order[:, :count].sort(dim=1).values


def anchor_scores(chunk: StoredChunk, rule: AnchorRule) -> Tensor:
    """Returns float32 [L, n], higher for tokens that stand in better for their chunk.

    Key norms as in arXiv 2604.08585, 3.1 (RoPE keeps the norm of a key, so stored keys give the request's order), their
    negatives for "low", or KVzip scores with the first tokens before all others (2606.05875, 3.3.3).
    """
    if rule == "kvzip":
        scores = chunk.importance.clone()
        scores[:, :NUM_SINKS] = 2.0 + torch.arange(min(NUM_SINKS, scores.shape[1]), 0, -1)
        return scores
    return chunk.key_norms if rule == "high" else -chunk.key_norms


class AnchorBank:
    """Keeps the anchors of chunks in memory, keys before RoPE, as the paper does; least recently used first out."""

    def __init__(self, decoder: Decoder, capacity_bytes: int = 256 * 2**20) -> None:
        self._decoder, self._capacity = decoder, capacity_bytes
        self._entries: OrderedDict[tuple[str, float, AnchorRule, int], _ChunkAnchors] = OrderedDict()
        self._size_bytes = 0

    def gather(self, placed: Sequence[Placed], num_layers: int, ratio: float, rule: AnchorRule) -> Anchors:
        """Returns the anchors of layers 0..num_layers-1, rotated at their places; the first chunk is taken whole.

        The first chunk is the system part (2606.05875, eq. 14). A part that is in the request's cache already is left out.
        Raises StoreError where a chunk has to be read.
        """
        parts = []
        for i, p in enumerate(placed):
            if p.chunk is None:
                continue
            own = self._chunk(p.chunk, num_layers, 1.0 if i == 0 else ratio, rule)
            parts.append(_ChunkAnchors(own.index + p.start, own.keys, own.values))
        positions = torch.cat([part.index for part in parts], dim=1)
        raw = torch.cat([part.keys for part in parts], dim=1)
        values = torch.cat([part.values for part in parts], dim=1)
        cos, sin = self._decoder.rope(positions.flatten())
        keys = self._decoder.rotated(raw.flatten(0, 1), cos, sin).view_as(raw)
        return Anchors(positions, keys, values)

    def _chunk(self, chunk: StoredChunk, num_layers: int, ratio: float, rule: AnchorRule) -> _ChunkAnchors:
        name = (chunk.key.hash, ratio, rule, num_layers)
        if name in self._entries:
            self._entries.move_to_end(name)
            return self._entries[name]
        made = self._read(chunk, anchor_index(anchor_scores(chunk, rule)[:num_layers], ratio))
        self._entries[name] = made
        self._size_bytes += _size(made)
        while self._size_bytes > self._capacity and len(self._entries) > 1:
            self._size_bytes -= _size(self._entries.popitem(last=False)[1])
        return made

    def _read(self, chunk: StoredChunk, index: Tensor) -> _ChunkAnchors:
        spec = self._decoder.spec
        buffer = torch.empty(chunk.num_tokens, spec.num_kv_heads, spec.head_dim, dtype=self._decoder.dtype)
        shape = (*index.shape, spec.num_kv_heads, spec.head_dim)
        keys, values = torch.empty(shape, dtype=buffer.dtype), torch.empty(shape, dtype=buffer.dtype)
        for layer, rows in enumerate(index):
            chunk.read_keys(layer, buffer)
            keys[layer] = buffer[rows]
            chunk.read_values(layer, buffer)
            values[layer] = buffer[rows]
        device = self._decoder.device
        return _ChunkAnchors(index.to(device), keys.to(device), values.to(device))


def _size(entry: _ChunkAnchors) -> int:
    return 2 * entry.keys.numel() * entry.keys.element_size()
