"""What each rule of selection scores, written out: one attention matrix, one head, one token at a time."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import oracle
import torch
from rules import Case, attention, behind, causal, chunk_states, mixed, project, rotate
from torch import Tensor

NUM_SINKS = 4


@torch.no_grad()
def full_view(case: Case) -> list[Tensor]:
    """Returns per layer [Hq, S, N]: attention of the question's own words, the question run over all that is stored.

    By transformers' forward over a cache that the question's rows are scattered into.
    """
    rows = torch.arange(case.question_start, case.question_span[1])
    room = torch.zeros(case.num_layers, len(rows), *case.context.keys.shape[2:])
    keys, values = (list(torch.cat([part, room], dim=1).transpose(1, 2)[:, None]) for part in case.context)
    out = case.hf(
        input_ids=case.ids[rows][None],
        position_ids=rows[None],
        cache=oracle.ScatterCache(keys, values, rows),
        attention_mask=torch.where(causal(rows, case.question_span[1]), 0.0, float("-inf"))[None, None],
        use_cache=True,
        output_attentions=True,
    )
    first = case.question_span[0] - case.question_start
    return [weights[0, :, first:, case.docs] for weights in out.attentions]


@torch.no_grad()
def behind_anchors(case: Case, anchors: Sequence[Tensor], layers: Sequence[int]) -> list[Tensor]:
    """Returns per layer of `layers` (ascending) [Hq, S, N]: attention of the question's words over the stored keys.

    In the layers below, the question saw `anchors[layer]`, positions [m] of stored tokens, and itself.
    """
    hf, rows = case.hf, torch.arange(case.question_start, case.question_span[1])
    own, first = causal(torch.arange(len(rows)), len(rows)), case.question_span[0] - case.question_start
    hidden, found = hf.model.embed_tokens(case.ids[rows]), []
    for layer in range(layers[-1] + 1):
        p = project(hf, layer, hidden)
        query, keys = rotate(hf, p.query, rows), rotate(hf, p.keys, rows)
        if layer in layers:
            everything = torch.cat([case.context.keys[layer], keys])
            found.append(attention(query[first:], everything, causal(rows[first:], len(everything)))[:, :, case.docs])
        if layer < layers[-1]:
            at = anchors[layer]
            visible = torch.cat([torch.ones(len(rows), len(at), dtype=torch.bool), own], dim=1)
            weights = attention(query, torch.cat([case.context.keys[layer, at], keys]), visible)
            hidden = behind(hf, layer, hidden, mixed(weights, torch.cat([case.context.values[layer, at], p.values])))
    return found


def reduced(weights: Tensor, reduction: str) -> Tensor:
    """Returns [N] of attention [Hq, S, N], over heads and question tokens."""
    num_heads, num_asked = weights.shape[:2]
    if reduction == "max":
        return torch.stack([weights[h, i] for h in range(num_heads) for i in range(num_asked)]).amax(dim=0)
    by_token = [sum(weights[h, i] for h in range(num_heads)) / num_heads for i in range(num_asked)]
    if reduction == "norm":
        return torch.sqrt(sum(mean**2 for mean in by_token))
    return sum(by_token) / num_asked


def deviation(case: Case) -> Tensor:
    """Returns [N], squared distance of each document token's value at layer 1 in full prefill to its stored one."""
    fresh = case.full.past_key_values.layers[1].values[0].transpose(0, 1)
    scores = []
    for position in range(case.system_len, case.question_start):
        difference = fresh[position] - case.stored.values[1, position]
        scores.append(sum(float((head**2).sum()) for head in difference))
    return torch.tensor(scores)


def received(case: Case) -> Tensor:
    """Returns [N], the attention that each document token gets at layer 1 of full prefill from every token of the prompt."""
    weights = case.full.attentions[1][0]
    return sum(weights[head].sum(dim=0) for head in range(weights.shape[0]))[case.docs] / weights.shape[0]


def by_weighed_heads(layers: Sequence[Tensor], weights: Sequence[Sequence[float]]) -> Tensor:
    """Returns [N]: attention [Hq, S, N] of several layers, mean over question tokens, each head weighed."""
    scores = torch.zeros(layers[0].shape[-1])
    for attended, of_heads in zip(layers, weights, strict=True):
        for head, weight in enumerate(of_heads):
            scores += weight * attended[head].mean(dim=0)
    return scores


def key_norms(case: Case, index: int) -> Tensor:
    """Returns [L, n], the L2 norms of a chunk's stored keys, mean over KV heads."""
    start, stop = case.chunk_spans[index]
    keys = case.stored.keys[:, start:stop]
    return sum((keys[:, :, head] ** 2).sum(dim=-1).sqrt() for head in range(keys.shape[2])) / keys.shape[2]


@cache
@torch.no_grad()
def kvzip(case: Case, index: int) -> Tensor:
    """Returns [L, n]: the most that any head of any token of the instruction behind a chunk attends to each of its tokens.

    The softmax runs over the first tokens of the prefix, the chunk, and the instruction up to the token.
    """
    behind_each = []
    for prefix, states in zip(case.prefixes[index], chunk_states(case, index), strict=True):
        at, num_sinks = torch.arange(len(states[0])), min(NUM_SINKS, len(prefix))
        seen, asked = torch.cat([at[:num_sinks], at[len(prefix) :]]), at[-len(case.instruction) :]
        rows = []
        for layer, hidden in enumerate(states):
            p = project(case.hf, layer, hidden)
            query, keys = rotate(case.hf, p.query, at)[asked], rotate(case.hf, p.keys, at)[seen]
            most = attention(query, keys, seen[None, :] <= asked[:, None]).amax(dim=(0, 1))
            rows.append(most[num_sinks : -len(case.instruction)])
        behind_each.append(torch.stack(rows))
    return sum(behind_each) / len(behind_each)


def num_anchors(ratio: float, num_tokens: int) -> int:
    """Returns ceil(ratio n), in exact arithmetic."""
    return math.ceil(Fraction(str(ratio)) * num_tokens)
