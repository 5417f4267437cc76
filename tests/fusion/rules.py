"""Transformers' own layers, one step at a time, and the chunk caches they give: what the written-out rules stand on.

Shares no code with the engine. Sizes: T prompt tokens, C of them system part and documents, N documents alone, L layers,
Hq query heads, Hkv KV heads, D head size.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb


class Projected(NamedTuple):
    """Queries [n, Hq, D], keys and values [n, Hkv, D] of one layer's rows, before the rotary embedding."""

    query: Tensor
    keys: Tensor
    values: Tensor


class KV(NamedTuple):
    """Keys and values, [L, n, Hkv, D] each."""

    keys: Tensor
    values: Tensor


@dataclass(eq=False)
class Case:
    """One request on a transformers model with eager attention.

    Args:
        ids: int64 [T].
        chunk_spans, question_span: [start, stop) positions of the chunks and of the question's own words.
        prefixes: per chunk, the ids that its cache was computed behind; of several, it is the mean over them.
        instruction: the ids that stand behind a chunk while its KVzip scores are taken.
    """

    hf: PreTrainedModel
    ids: Tensor
    system_len: int
    chunk_spans: tuple[tuple[int, int], ...]
    question_start: int
    question_span: tuple[int, int]
    prefixes: list[list[Tensor]]
    instruction: Tensor

    @property
    def num_layers(self) -> int:
        return self.hf.config.num_hidden_layers

    @property
    def docs(self) -> slice:
        return slice(self.system_len, self.question_start)

    @property
    def is_exact(self) -> list[bool]:
        """Returns per chunk whether what stands before it in the request is all that it was computed behind."""
        before = [self.ids[:start] for start, _ in self.chunk_spans]
        return [all(torch.equal(prefix, seen) for prefix in behind) for behind, seen in zip(self.prefixes, before, strict=True)]

    def budget(self, ratio: float) -> int:
        """Returns max(1, floor(ratio N)), in exact arithmetic."""
        return max(1, math.floor(Fraction(str(ratio)) * (self.question_start - self.system_len)))

    @cached_property
    @torch.no_grad()
    def full(self):
        """Returns transformers' forward over the whole prompt, with attentions and hidden states."""
        return self.hf(input_ids=self.ids[None], use_cache=True, output_attentions=True, output_hidden_states=True)

    @cached_property
    @torch.no_grad()
    def stored(self) -> KV:
        """Returns the stored system part and chunks, at their places: keys before the rotary embedding [L, C, Hkv, D]."""
        system = [project(self.hf, layer, hidden) for layer, hidden in enumerate(hidden_states(self.hf, self.ids[: self.system_len]))]
        parts = [KV(torch.stack([p.keys for p in system]), torch.stack([p.values for p in system]))]
        parts += [self.stored_chunk(index) for index in range(len(self.chunk_spans))]
        return KV(torch.cat([part.keys for part in parts], dim=1), torch.cat([part.values for part in parts], dim=1))

    @torch.no_grad()
    def stored_chunk(self, index: int) -> KV:
        """Returns keys before the rotary embedding and values [L, n, Hkv, D] of a chunk, computed behind what it stands behind."""
        start, stop = self.chunk_spans[index]
        keys, values = [], []
        for prefix, states in zip(self.prefixes[index], chunk_states(self, index), strict=True):
            own = slice(len(prefix), len(prefix) + stop - start)
            projected = [project(self.hf, layer, hidden[own]) for layer, hidden in enumerate(states)]
            keys.append(torch.stack([p.keys for p in projected]))
            values.append(torch.stack([p.values for p in projected]))
        return KV(sum(keys) / len(keys), sum(values) / len(values))

    @cached_property
    @torch.no_grad()
    def context(self) -> KV:
        """Returns the stored system part and chunks, keys rotated at their positions of the request."""
        at = torch.arange(self.question_start)
        return KV(torch.stack([rotate(self.hf, keys, at) for keys in self.stored.keys]), self.stored.values)


def hidden_states(hf: PreTrainedModel, ids: Tensor) -> list[Tensor]:
    """Returns per layer what goes into it, [n, hidden]."""
    return [states[0] for states in hf(input_ids=ids[None], output_hidden_states=True).hidden_states[:-1]]


@cache
@torch.no_grad()
def chunk_states(case: Case, index: int) -> list[list[Tensor]]:
    """Returns what goes into each layer for a prefix, the chunk and the instruction [p + n + m, hidden], for each of its prefixes.

    A token sees nothing behind itself, so the chunk's part is what it is without the instruction.
    """
    start, stop = case.chunk_spans[index]
    return [hidden_states(case.hf, torch.cat([prefix, case.ids[start:stop], case.instruction])) for prefix in case.prefixes[index]]


def project(hf: PreTrainedModel, layer: int, hidden: Tensor) -> Projected:
    """Returns queries, keys and values of rows [n, hidden], by the layer's own modules."""
    block = hf.model.layers[layer]
    attn, normed = block.self_attn, block.input_layernorm(hidden)
    query, keys, values = (module(normed).unflatten(-1, (-1, attn.head_dim)) for module in (attn.q_proj, attn.k_proj, attn.v_proj))
    if hasattr(attn, "q_norm"):
        query, keys = attn.q_norm(query), attn.k_norm(keys)
    return Projected(query, keys, values)


def rotate(hf: PreTrainedModel, heads: Tensor, positions: Tensor) -> Tensor:
    """Returns heads [n, H, D] rotated at positions [n]."""
    cos, sin = hf.model.rotary_emb(heads, positions[None])
    first = heads.transpose(0, 1)[None]
    return apply_rotary_pos_emb(first, first, cos, sin)[0][0].transpose(0, 1)


def attention(query: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
    """Returns weights [Hq, n, T] of rotated queries [n, Hq, D] over keys [T, Hkv, D]; visible: bool [n, T]."""
    group, weights = query.shape[1] // keys.shape[1], []
    for head in range(query.shape[1]):
        scores = query[:, head] @ keys[:, head // group].T / math.sqrt(query.shape[-1])
        weights.append(torch.softmax(scores.masked_fill(~visible, float("-inf")), dim=-1))
    return torch.stack(weights)


def mixed(weights: Tensor, values: Tensor) -> Tensor:
    """Returns [n, Hq, D]: values [T, Hkv, D] weighed by weights [Hq, n, T]."""
    group = weights.shape[0] // values.shape[1]
    return torch.stack([weights[head] @ values[:, head // group] for head in range(weights.shape[0])], dim=1)


def behind(hf: PreTrainedModel, layer: int, hidden: Tensor, heads: Tensor) -> Tensor:
    """Returns rows [n, hidden] behind a layer whose attention gave `heads` [n, Hq, D]."""
    block = hf.model.layers[layer]
    hidden = hidden + block.self_attn.o_proj(heads.flatten(1))
    return hidden + block.mlp(block.post_attention_layernorm(hidden))


def logits_of(hf: PreTrainedModel, hidden: Tensor) -> Tensor:
    """Returns logits [vocabulary] of the last of the rows [n, hidden] behind the last layer."""
    return hf.lm_head(hf.model.norm(hidden[-1]))


def causal(positions: Tensor, num_keys: int) -> Tensor:
    """Returns bool [n, T]: which keys a row at a position sees."""
    return torch.arange(num_keys)[None, :] <= positions[:, None]
