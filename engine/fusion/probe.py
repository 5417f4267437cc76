"""The query probe: question tokens run behind anchor tokens up to a layer, and what they attend to there."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from engine.chunks.anchors import AnchorRule
from engine.fusion.base import SelectionContext, question_rows
from engine.model.cache import RequestCache


class Probe(NamedTuple):
    """Rotated queries [S, Hq, D] of the question's own words and keys [P, Hkv, D] of all probe rows at one `layer`.

    anchors: int64 [layers, m], the positions that stood in for the context at the layers below.
    """

    layer: int
    query: Tensor
    keys: Tensor
    anchors: Tensor


def run_probe(context: SelectionContext, layers: Sequence[int], ratio: float, rule: AnchorRule) -> list[Probe]:
    """Runs the question behind the anchors up to the deepest of `layers` (ascending) and projects it at each.

    Every anchor is visible to every probe row; probe rows see each other causally and stand at their true
    positions of the request (arXiv 2604.08585, 3.1; 2606.05875, 3.3.2).
    """
    decoder, prompt, deepest = context.decoder, context.prompt, layers[-1]
    anchors = context.anchors.gather(context.placed, max(deepest, 1), ratio, rule)
    # What is in the cache already is the system part of a conversation: all of it stands in for itself.
    resident = torch.arange(context.resident_len, device=anchors.positions.device).expand(anchors.positions.shape[0], -1)
    positions = torch.cat([resident, anchors.positions], dim=1)
    num_resident, num_anchors = context.resident_len, positions.shape[1]
    at = question_rows(prompt)
    rows = decoder.rows(torch.arange(num_anchors, num_anchors + at.shape[0]), rope_positions=at)
    cache = RequestCache(decoder.spec, num_anchors + at.shape[0], decoder.dtype, decoder.device, num_layers=deepest)
    first = prompt.question_span[0] - prompt.question_start
    hidden = decoder.embed(context.ids[at.to(context.ids.device)])
    probes = []
    for layer in range(deepest + 1):
        context.check()
        projection = decoder.project(layer, hidden)
        if layer in layers:
            query = decoder.rotated(projection.query[first:], rows.cos[first:], rows.sin[first:])
            probes.append(Probe(layer, query, decoder.rotated(projection.keys, rows.cos, rows.sin), positions))
        if layer < deepest:
            cache.keys[layer, :num_resident] = context.cache.keys[layer, :num_resident]
            cache.values[layer, :num_resident] = context.cache.values[layer, :num_resident]
            cache.keys[layer, num_resident:num_anchors] = anchors.keys[layer]
            cache.values[layer, num_resident:num_anchors] = anchors.values[layer]
            decoder.write(layer, projection.keys, projection.values, rows, cache)
            hidden = decoder.attend(layer, hidden, projection.query, rows, cache)
    return probes


def context_scores(context: SelectionContext, probe: Probe, reduction: str) -> Tensor:
    """Returns float32 [N]: the attention each document token receives from the question at the probe's layer.

    The softmax runs over the system part, all cached document keys and the probe's own keys.
    """
    return _scores(context, probe, reduction)


def context_head_scores(context: SelectionContext, probe: Probe) -> Tensor:
    """Returns float32 [Hq, N]: as `context_scores`, for each query head, mean over question tokens."""
    return _scores(context, probe, "head")


def _scores(context: SelectionContext, probe: Probe, reduction: str) -> Tensor:
    prompt = context.prompt
    keys = torch.cat([context.loader.load_keys(probe.layer), probe.keys])
    positions = torch.arange(*prompt.question_span, device=keys.device)
    scores = context.decoder.ops.token_scores(probe.query, keys, positions, reduction)
    return scores[..., prompt.system_len : prompt.question_start]
