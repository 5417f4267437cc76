"""A Llama-like decoder as separate steps, so that a caller decides which rows run through which layer.

Knows nothing of chunks, methods or prompts. Rows are hidden states [R, hidden]; a `Rows` says where they stand.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.cache import RequestCache
from engine.model.loader import LoadedModel
from engine.model.rope import rope_tables
from kernels.ops import KernelOps
from kernels.rows import RowSet, row_set
from kernels.vector_math import settle_vector_math


class Rows(NamedTuple):
    """Computed rows: where they stand among the keys (`set`) and their rotary tables [R, 1, D / 2]."""

    set: RowSet
    cos: Tensor
    sin: Tensor


class Projection(NamedTuple):
    """Queries [R, Hq, D] or None, keys and values [R, Hkv, D] of one layer's rows, before the rotary embedding."""

    query: Tensor | None
    keys: Tensor
    values: Tensor


class Decoder:
    """Runs single layers of one model. Stateless but for its weights; safe for one caller at a time."""

    def __init__(self, model: LoadedModel, ops: KernelOps) -> None:
        self.spec, self.weights, self.ops = model.spec, model.weights, ops
        self.device, self.dtype = model.device, model.dtype
        settle_vector_math()

    def rows(self, positions: Tensor, rope_positions: Tensor | None = None) -> Rows:
        """Returns the rows at int64 key indices [R]; their rotary positions are the same unless given."""
        positions = positions.to(self.device)
        at = positions if rope_positions is None else rope_positions.to(self.device)
        return Rows(row_set(positions, self.spec.group_size, self.dtype), *self.rope(at))

    def rope(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Returns cos and sin [n, 1, D / 2] at positions [n]."""
        cos, sin = rope_tables(self.spec.rope, positions, self.dtype, self.device)
        return cos[:, None, :], sin[:, None, :]

    def embed(self, ids: Tensor) -> Tensor:
        """Returns the hidden states [n, hidden] of token ids [n]."""
        return F.embedding(ids.to(self.device), self.weights.embedding)

    def project(self, layer: int, hidden: Tensor) -> Projection:
        """Returns q, k, v of the rows; k after its head norm where the model has one, none of them rotated."""
        normed = self._norm(hidden, self.weights.layers[layer].input_norm)
        return Projection(self._queries(layer, normed), *self._keys_values(layer, normed))

    def project_kv(self, layer: int, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Returns k and v alone, as `project` does, for rows whose queries nobody needs."""
        return self._keys_values(layer, self._norm(hidden, self.weights.layers[layer].input_norm))

    def project_query(self, layer: int, hidden: Tensor) -> Tensor:
        """Returns q alone, as `project` does."""
        return self._queries(layer, self._norm(hidden, self.weights.layers[layer].input_norm))

    def unrotated(self, keys: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Returns the keys before RoPE of rotated ones, as a new tensor."""
        raw = self.rotated(keys, cos, -sin)
        return raw if self.spec.rope.attention_scaling == 1.0 else raw.div_(self.spec.rope.attention_scaling**2)

    def rotated(self, raw: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Returns RoPE(raw) as a new tensor."""
        out = torch.empty(raw.shape, dtype=raw.dtype, device=raw.device)
        self.ops.rotate_keys(raw, cos, sin, out)
        return out

    def write(self, layer: int, keys: Tensor, values: Tensor, rows: Rows, cache: RequestCache) -> None:
        """Rotates fresh keys and writes them and the values to the rows' positions in the cache."""
        at = rows.set.positions
        if rows.set.is_prefix:
            self.ops.rotate_keys(keys, rows.cos, rows.sin, cache.keys[layer, : rows.set.num_rows])
            cache.values[layer, : rows.set.num_rows] = values
            return
        cache.keys[layer].index_copy_(0, at, self.rotated(keys, rows.cos, rows.sin))
        cache.values[layer].index_copy_(0, at, values.contiguous())

    def attend(self, layer: int, hidden: Tensor, query: Tensor, rows: Rows, cache: RequestCache) -> Tensor:
        """Returns the rows' hidden states behind the layer; their fresh K and V must be in the cache already."""
        return self.behind(layer, hidden, self.attention(layer, self.rotated(query, rows.cos, rows.sin), rows, cache))

    def attention(self, layer: int, rotated: Tensor, rows: Rows, cache: RequestCache) -> Tensor:
        """Returns the attention [R, Hq, D] of rotated queries over one layer of the cache, read as the cache says."""
        keys, values, reading = cache.keys[layer], cache.values[layer], cache.reading
        if not reading.is_weighted:
            return self.ops.selected_attention(rotated, keys, values, rows.set)
        context = (reading.start, reading.stop)
        return self.ops.weighted_attention(rotated, keys, values, rows.set, context, reading.temperature, reading.scale)

    def behind(self, layer: int, hidden: Tensor, attn: Tensor) -> Tensor:
        """Returns the rows' hidden states behind a layer, given those before it and the rows' attention [R, Hq, D]."""
        w = self.weights.layers[layer]
        hidden = w.out(attn.reshape(attn.shape[0], -1)).add_(hidden)
        # In place, so that no prompt-sized temporary is allocated and touched anew in every layer.
        gate, up = w.gate_up(self._norm(hidden, w.post_norm)).chunk(2, dim=-1)
        return w.down(F.silu(gate, inplace=True).mul_(up)).add_(hidden)

    def run_layer(self, layer: int, hidden: Tensor, rows: Rows, cache: RequestCache) -> Tensor:
        """Returns the rows behind one layer, having written their K and V to the cache."""
        p = self.project(layer, hidden)
        self.write(layer, p.keys, p.values, rows, cache)
        return self.attend(layer, hidden, p.query, rows, cache)

    def logits(self, hidden: Tensor) -> Tensor:
        """Returns float32 logits [R, vocabulary] of rows behind the last layer."""
        return self.weights.head(self._norm(hidden, self.weights.final_norm)).float()

    def extend(self, ids: Tensor, start: int, cache: RequestCache) -> Tensor:
        """Returns the logits [n, vocabulary] of n tokens that continue a filled cache at position `start`."""
        positions = torch.arange(start, start + ids.shape[0])
        rows = self.rows(positions, positions + cache.reading.rope_offset)
        hidden = self.embed(ids)
        for layer in range(self.spec.num_layers):
            hidden = self.run_layer(layer, hidden, rows, cache)
        return self.logits(hidden)

    def _norm(self, hidden: Tensor, weight: Tensor) -> Tensor:
        if self.device.type != "cpu":
            return F.rms_norm(hidden, (hidden.shape[-1],), weight, self.spec.norm_eps)
        # The same formula in three passes over memory; torch's own takes five on a CPU.
        square = torch.linalg.vector_norm(hidden, dim=-1, keepdim=True).square_()
        return torch.mul(hidden, square.div_(hidden.shape[-1]).add_(self.spec.norm_eps).rsqrt_()).mul_(weight)

    def _queries(self, layer: int, normed: Tensor) -> Tensor:
        w = self.weights.layers[layer]
        return self._head_norm(w.query(normed).unflatten(-1, (self.spec.num_heads, self.spec.head_dim)), w.q_norm)

    def _keys_values(self, layer: int, normed: Tensor) -> tuple[Tensor, Tensor]:
        w = self.weights.layers[layer]
        both = w.keys_values(normed).unflatten(-1, (2, self.spec.num_kv_heads, self.spec.head_dim))
        return self._head_norm(both[:, 0], w.k_norm), both[:, 1]

    def _head_norm(self, heads: Tensor, weight: Tensor | None) -> Tensor:
        return heads if weight is None else self._norm(heads, weight)
