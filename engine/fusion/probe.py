"""The query probe: question tokens run behind anchor tokens up to a layer, and what they attend to there."""

from typing import NamedTuple

import torch
from torch import Tensor

from engine.chunks.anchors import Direction
from engine.fusion.base import SelectionContext, question_rows
from engine.model.cache import RequestCache


class Probe(NamedTuple):
    """Rotated queries [S, Hq, D] of the question's own words and keys [P, Hkv, D] of all probe rows at one layer.

    anchors: int64 [layers, m], the positions that stood in for the context at the layers below.
    """

    query: Tensor
    keys: Tensor
    anchors: Tensor


def run_probe(context: SelectionContext, layer: int, ratio: float, direction: Direction) -> Probe:
    """Runs the question behind the anchors through layers 0..layer-1 and projects it at `layer`.

    Every anchor is visible to every probe row; probe rows see each other causally and stand at their true
    positions of the request (arXiv 2604.08585, 3.1; 2606.05875, 3.3.2).
    """
    decoder, prompt = context.decoder, context.prompt
    anchors = context.anchors.gather(context.placed, max(layer, 1), ratio, direction)
    num_anchors = anchors.positions.shape[1]
    at = question_rows(prompt)
    rows = decoder.rows(torch.arange(num_anchors, num_anchors + at.shape[0]), rope_positions=at)
    cache = RequestCache(decoder.spec, num_anchors + at.shape[0], decoder.dtype, decoder.device)
    hidden = decoder.embed(context.ids[at.to(context.ids.device)])
    for i in range(layer):
        context.check()
        cache.keys[i, :num_anchors] = anchors.keys[i]
        cache.values[i, :num_anchors] = anchors.values[i]
        hidden = decoder.run_layer(i, hidden, rows, cache)
    projection = decoder.project(layer, hidden)
    first = prompt.question_span[0] - prompt.question_start
    return Probe(
        decoder.rotated(projection.query[first:], rows.cos[first:], rows.sin[first:]),
        decoder.rotated(projection.keys, rows.cos, rows.sin),
        anchors.positions,
    )


def context_scores(context: SelectionContext, layer: int, probe: Probe, reduction: str) -> Tensor:
    """Returns float32 [N]: the attention each document token receives from the question at `layer`.

    The softmax runs over the system part, all cached document keys and the probe's own keys.
    """
    prompt = context.prompt
    cached = context.loader.load_keys(layer)
    keys = torch.cat([cached, probe.keys])
    start, stop = prompt.question_span
    positions = torch.arange(start, stop, device=keys.device)
    scores = context.decoder.ops.token_scores(probe.query, keys, positions, reduction)
    return scores[prompt.system_len : prompt.question_start]
