"""An independent path to the same results: transformers' own forward pass with a cache that fresh rows are scattered into.

Written out as steps, with explicit masks; shares no code with the engine.
"""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import Cache


class ScatterCache(Cache):
    """Keys and values [1, Hkv, T, D] per layer; a forward pass overwrites the positions it computes and sees all."""

    def __init__(self, keys: list[Tensor], values: list[Tensor], positions: Tensor) -> None:
        super().__init__(layers=[])
        self.keys, self.values, self.positions = keys, values, positions

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        self.keys[layer_idx][:, :, self.positions] = key_states
        self.values[layer_idx][:, :, self.positions] = value_states
        return self.keys[layer_idx], self.values[layer_idx]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0

    def get_mask_sizes(self, *args, **kwargs):
        return self.keys[0].shape[2], 0

    @property
    def is_compileable(self) -> bool:
        return False


@dataclass
class OracleResult:
    """logits [V] of the last row; keys, values [L, T, Hkv, D], rotated."""

    logits: Tensor
    keys: Tensor
    values: Tensor


def _causal(positions: Tensor, num_keys: int) -> Tensor:
    allowed = torch.arange(num_keys)[None, :] <= positions[:, None]
    return torch.where(allowed, 0.0, float("-inf"))[None, None]


@torch.no_grad()
def run_rows(model, ids: np.ndarray, rows: np.ndarray, keys: list[Tensor], values: list[Tensor]) -> OracleResult:
    """Runs the tokens at `rows` over the given cache, which is changed."""
    positions = torch.from_numpy(np.asarray(rows))
    cache = ScatterCache(keys, values, positions)
    out = model(
        input_ids=torch.from_numpy(ids)[positions][None],
        position_ids=positions[None],
        past_key_values=cache,
        attention_mask=_causal(positions, keys[0].shape[2]),
        use_cache=True,
    )
    return OracleResult(
        out.logits[0, -1], torch.stack([k[0].transpose(0, 1) for k in keys]), torch.stack([v[0].transpose(0, 1) for v in values])
    )


def full_prefill(model, ids: np.ndarray) -> OracleResult:
    """Returns transformers' result for the whole prompt, by its ordinary path; not to be written into."""
    return _full_prefill(model, tuple(ids.tolist()))


# Dozens of methods are held against the same prompts and chunks.
@functools.lru_cache(maxsize=64)
@torch.no_grad()
def _full_prefill(model, ids: tuple[int, ...]) -> OracleResult:
    out = model(input_ids=torch.tensor([ids]), use_cache=True)
    layers = out.past_key_values.layers
    return OracleResult(
        out.logits[0, -1],
        torch.stack([layer.keys[0].transpose(0, 1) for layer in layers]),
        torch.stack([layer.values[0].transpose(0, 1) for layer in layers]),
    )


def chunk_keys_at(model, prefix: np.ndarray, ids: np.ndarray, start: int) -> tuple[list[Tensor], list[Tensor]]:
    """Returns K, V [Hkv, n, D] per layer of a chunk computed behind `prefix`, rotated as if it stood at `start`; not to be written into."""
    return _chunk_keys_at(model, tuple(prefix.tolist()), tuple(ids.tolist()), start)


@functools.lru_cache(maxsize=512)
@torch.no_grad()
def _chunk_keys_at(model, prefix: tuple[int, ...], ids: tuple[int, ...], start: int) -> tuple[list[Tensor], list[Tensor]]:
    positions = torch.arange(start - len(prefix), start + len(ids))
    out = model(input_ids=torch.tensor([prefix + ids]), position_ids=positions[None], use_cache=True)
    layers = out.past_key_values.layers
    return [layer.keys[0, :, len(prefix) :] for layer in layers], [layer.values[0, :, len(prefix) :] for layer in layers]


def fused_cache(model, prompt, prefixes, exact_layers: int = 1) -> tuple[list[Tensor], list[Tensor]]:
    """Returns K, V [1, Hkv, T, D] per layer: chunks as stored, system part and the first layers exact, question rows zero.

    prefixes: per chunk, the ids of all that it was computed behind; several give the mean.
    """
    exact = full_prefill(model, prompt.ids)
    keys = [k.transpose(0, 1)[None].clone() for k in exact.keys]
    values = [v.transpose(0, 1)[None].clone() for v in exact.values]
    for layer in range(exact_layers, len(keys)):
        keys[layer][:, :, prompt.question_start :] = 0
        values[layer][:, :, prompt.question_start :] = 0
    for (start, stop), behind in zip(prompt.chunk_spans, prefixes, strict=True):
        computed = [chunk_keys_at(model, prefix, prompt.ids[start:stop], start) for prefix in behind]
        for layer in range(exact_layers, len(keys)):
            keys[layer][0, :, start:stop] = sum(k[layer] for k, _ in computed) / len(behind)
            values[layer][0, :, start:stop] = sum(v[layer] for _, v in computed) / len(behind)
    return keys, values
