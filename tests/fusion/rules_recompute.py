"""What is done with a choice of rows, written out: recomputed over stored chunks, corrected keys, filtered or weighed apart."""

import math
from fractions import Fraction
from typing import NamedTuple

import torch
from rules import KV, Case, attention, behind, causal, logits_of, mixed, project, rotate
from torch import Tensor


class Recomputed(NamedTuple):
    """logits [vocabulary] behind the prompt; rows [R], positions in the last layer; keys (rotated), values [L, T, Hkv, D]."""

    logits: Tensor
    rows: Tensor
    cache: KV


def _filled(case: Case, exact_layers: int) -> KV:
    """Returns the cache of a request before its rows: exact first layers, above them what is stored, NaN for the question."""
    rest = torch.full((case.num_layers, len(case.ids) - case.question_start, *case.context.keys.shape[2:]), float("nan"))
    keys, values = (torch.cat([part, rest], dim=1) for part in case.context)
    for layer in range(exact_layers):
        exact = case.full.past_key_values.layers[layer]
        keys[layer], values[layer] = exact.keys[0].transpose(0, 1), exact.values[0].transpose(0, 1)
    return KV(keys, values)


@torch.no_grad()
def recompute_shifted(case: Case, rows: Tensor, exact_layers: int, beta: float, kappa: float) -> Recomputed:
    """Recomputes rows [R] over stored chunks whose keys are shifted in every layer by what the recomputed ones reveal."""
    hf, cache = case.hf, _filled(case, exact_layers)
    # Rows that see nothing but exact keys and values so far are those of full prefill.
    hidden = case.full.hidden_states[exact_layers][0, rows]
    for layer in range(exact_layers, case.num_layers):
        p = project(hf, layer, hidden)
        raw = case.stored.keys[layer].clone()
        for (start, stop), is_exact in zip(case.chunk_spans, case.is_exact, strict=True):
            inside = [i for i, row in enumerate(rows.tolist()) if start <= row < stop]
            if is_exact or not inside:
                continue
            mean = sum(p.keys[i] - case.stored.keys[layer, rows[i]] for i in inside) / len(inside)
            for position in range(start, stop):
                raw[position] += beta * len(inside) / (len(inside) + kappa) * mean
        cache.keys[layer, : case.question_start] = rotate(hf, raw, torch.arange(case.question_start))
        cache.keys[layer, rows], cache.values[layer, rows] = rotate(hf, p.keys, rows), p.values
        hidden = _attended(case, layer, hidden, p.query, rows, cache)
    return Recomputed(logits_of(hf, hidden), rows, cache)


@torch.no_grad()
def recompute_filtered(case: Case, scores: Tensor, count: int, num_layers: int, excess: float) -> Recomputed:
    """Recomputes the most deviating tokens of layer 1 by `scores` [N], fewer in each of the next layers, at last `count`."""
    hf, cache, num_docs = case.hf, _filled(case, 2), case.question_start - case.system_len
    most = min(num_docs, round(count * Fraction(str(excess))))
    sizes = [round(most + Fraction((count - most) * i, num_layers)) for i in range(num_layers + 1)]
    question = torch.arange(case.question_start, len(case.ids))
    rows = torch.cat([_best(scores, sizes[0]) + case.system_len, question])
    # Behind layer 1, where keys and values are exact for every token.
    hidden = case.full.hidden_states[2][0, rows]
    for layer in range(2, case.num_layers):
        p = project(hf, layer, hidden)
        cache.keys[layer, rows], cache.values[layer, rows] = rotate(hf, p.keys, rows), p.values
        kept = torch.arange(len(rows))
        if layer - 1 <= num_layers:
            chosen = len(rows) - len(question)
            moved = torch.stack([((p.values[i] - case.stored.values[layer, rows[i]]) ** 2).sum() for i in range(chosen)])
            kept = torch.cat([_best(moved, sizes[layer - 1]), kept[chosen:]])
        rows, hidden = rows[kept], hidden[kept]
        hidden = _attended(case, layer, hidden, p.query[kept], rows, cache)
    return Recomputed(logits_of(hf, hidden), rows, cache)


def _attended(case: Case, layer: int, hidden: Tensor, query: Tensor, rows: Tensor, cache: KV) -> Tensor:
    """Returns rows behind a layer; every row sees the cache up to its own position."""
    weights = attention(rotate(case.hf, query, rows), cache.keys[layer], causal(rows, len(case.ids)))
    return behind(case.hf, layer, hidden, mixed(weights, cache.values[layer]))


def _best(scores: Tensor, count: int) -> Tensor:
    """Returns the indices of the `count` highest scores, sorted."""
    return torch.tensor(sorted(sorted(range(len(scores)), key=lambda i: (-float(scores[i]), i))[:count]), dtype=torch.int64)


@torch.no_grad()
def side_by_side(case: Case, temperature: float, scale: float, parallel: bool, num_tokens: int) -> tuple[Tensor, list[int]]:
    """Returns the first token's logits and the greedy continuation of the question over stored chunks side by side.

    parallel: whether all chunks start where the system part ends, with the question behind the longest.
    """
    hf, longest = case.hf, max(stop - start for start, stop in case.chunk_spans)
    places = [list(range(case.system_len))]
    places += [list(range(case.system_len, case.system_len + b - a)) if parallel else list(range(a, b)) for a, b in case.chunk_spans]
    at = torch.tensor([place for part in places for place in part])
    keys = [rotate(hf, raw, at) for raw in case.stored.keys]
    values = list(case.stored.values)
    ids, answer, first = case.ids[case.question_start :], [], None
    next_place = case.system_len + longest if parallel else case.question_start
    while len(answer) < num_tokens:
        position = torch.arange(next_place, next_place + len(ids))
        hidden = hf.model.embed_tokens(ids)
        for layer in range(case.num_layers):
            p = project(hf, layer, hidden)
            keys[layer] = torch.cat([keys[layer], rotate(hf, p.keys, position)])
            values[layer] = torch.cat([values[layer], p.values])
            query, num_before = rotate(hf, p.query, position), len(keys[layer]) - len(ids)
            group, heads = query.shape[1] // p.keys.shape[1], torch.empty_like(query)
            for row in range(len(ids)):
                seen = slice(num_before + row + 1)
                for head in range(query.shape[1]):
                    read = (keys[layer][seen, head // group], values[layer][seen, head // group])
                    heads[row, head] = _read(query[row, head], *read, case.docs, temperature, scale)
            hidden = behind(hf, layer, hidden, heads)
        logits = logits_of(hf, hidden)
        first = logits if first is None else first
        next_place += len(ids)
        answer.append(int(logits.argmax()))
        ids = torch.tensor(answer[-1:])
    return first, answer


def _read(query: Tensor, keys: Tensor, values: Tensor, docs: slice, temperature: float, scale: float) -> Tensor:
    """Returns [D], what one head of one row reads: the documents and the rest softmaxed apart, and weighed by their sums."""
    scores = keys @ query / math.sqrt(len(query))
    inside = torch.zeros(len(keys), dtype=torch.bool)
    inside[docs] = True
    warm, plain = scores[inside] / temperature, scores[~inside]
    from_docs, from_rest = torch.softmax(warm, 0) @ values[inside], torch.softmax(plain, 0) @ values[~inside]
    sums = torch.stack([scale * torch.logsumexp(warm, 0), torch.logsumexp(plain, 0)])
    share = torch.softmax(sums, 0)
    return share[0] * from_docs + share[1] * from_rest
