"""The gradient oracle: how much KL to full prefill falls when a document token gets its true KV instead of the stored one.

A plain forward pass of the question's and the answer's rows that autograd can follow; the engine's own works in place.
First order, so a direction and not a bound. Knows nothing of chunks and methods.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.decoder import Decoder
from engine.model.weights import LayerWeights

# Where along the way from the stored to the true KV the slope is taken.
STEPS = (0.0, 0.5)


@dataclass(frozen=True, eq=False, slots=True)
class MixedKV:
    """Rotated keys and values [L, context, Hkv, D] of what stands before the question, as stored and as full prefill has them.

    The context is the system part, `system_len` tokens whose KV is exact, and N document tokens.
    """

    stored_keys: Tensor
    stored_values: Tensor
    true_keys: Tensor
    true_values: Tensor
    system_len: int

    @property
    def num_doc_tokens(self) -> int:
        """Returns N."""
        return self.true_keys.shape[1] - self.system_len

    def at(self, layer: int, share: Tensor) -> tuple[Tensor, Tensor]:
        """Returns K and V of a layer, [context, Hkv, D]: stored + share (true - stored) for each document token's share [N]."""
        weight = F.pad(share, (self.system_len, 0), value=1.0)[:, None, None]
        keys, values = self.stored_keys[layer], self.stored_values[layer]
        return keys + weight * (self.true_keys[layer] - keys), values + weight * (self.true_values[layer] - values)


def row_logits(decoder: Decoder, mixed: MixedKV, ids: Tensor, share: Tensor, num_last: int) -> Tensor:
    """Returns float32 logits [num_last, vocabulary] of the last rows; only the rows of `ids` are computed.

    Args:
        ids: int64 [R], the tokens behind the context.
        share: float [N], how much of its true KV each document token has, 0 for the stored and 1 for the true one.
    """
    start, num = mixed.true_keys.shape[1], ids.shape[0]
    positions = torch.arange(start, start + num, device=decoder.device)
    cos, sin = decoder.rope(positions)
    future = torch.arange(start + num, device=decoder.device)[None, :] > positions[:, None]
    hidden = F.embedding(ids.to(decoder.device), decoder.weights.embedding)
    for layer, weights in enumerate(decoder.weights.layers):
        query, keys, values = _project(decoder, weights, hidden)
        before_keys, before_values = mixed.at(layer, share)
        keys = torch.cat([before_keys, _rotated(keys, cos, sin)])
        attn = _attention(_rotated(query, cos, sin), keys, torch.cat([before_values, values]), future)
        hidden = hidden + F.linear(attn.flatten(1), weights.out.weight, weights.out.bias)
        gate, up = F.linear(_norm(decoder, hidden, weights.post_norm), weights.gate_up.weight).chunk(2, dim=-1)
        hidden = hidden + F.linear(F.silu(gate) * up, weights.down.weight)
    return F.linear(_norm(decoder, hidden[-num_last:], decoder.weights.final_norm), decoder.weights.head.weight).float()


def token_gains(decoder: Decoder, mixed: MixedKV, ids: Tensor, num_answer: int) -> Tensor:
    """Returns float32 [N], nats: minus the slope of the mean KL(full || mixed) by each token's share, summed over STEPS.

    Args:
        ids: int64 [R], question segment and answer; KL is taken where its last num_answer tokens and their end are predicted.
    """
    ids = ids.to(decoder.device)
    with torch.no_grad():
        full = row_logits(decoder, mixed, ids, torch.ones(mixed.num_doc_tokens, device=decoder.device), num_answer + 1)
        full = torch.log_softmax(full, dim=-1)
    gains = torch.zeros(mixed.num_doc_tokens, device=decoder.device)
    for step in STEPS:
        with torch.enable_grad():
            share = torch.full_like(gains, step, requires_grad=True)
            other = torch.log_softmax(row_logits(decoder, mixed, ids, share, num_answer + 1), dim=-1)
            divergence = F.kl_div(other, full, log_target=True, reduction="none").sum(dim=-1).mean()
            gains -= torch.autograd.grad(divergence, share)[0]
    return gains


def _project(decoder: Decoder, weights: LayerWeights, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    spec = decoder.spec
    normed = _norm(decoder, hidden, weights.input_norm)
    query, both = (F.linear(normed, w.weight, w.bias).unflatten(-1, (-1, spec.head_dim)) for w in (weights.query, weights.keys_values))
    keys, values = both.chunk(2, dim=1)
    if weights.q_norm is not None and weights.k_norm is not None:
        query, keys = _norm(decoder, query, weights.q_norm), _norm(decoder, keys, weights.k_norm)
    return query, keys, values


def _attention(query: Tensor, keys: Tensor, values: Tensor, future: Tensor) -> Tensor:
    """Returns [R, Hq, D]: query head h reads KV head h // (Hq / Hkv); future: bool [R, T], keys a row must not see."""
    group = query.shape[1] // keys.shape[1]
    q, k, v = (part.transpose(0, 1) for part in (query, keys.repeat_interleave(group, dim=1), values.repeat_interleave(group, dim=1)))
    scores = (q @ k.transpose(1, 2)) / query.shape[-1] ** 0.5
    return (torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v).transpose(0, 1)


def _rotated(raw: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = raw.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _norm(decoder: Decoder, rows: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(rows, (rows.shape[-1],), weight, decoder.spec.norm_eps)
