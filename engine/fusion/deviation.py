"""What stored values miss: layer 0 and layer 1's keys and values of every token, computed afresh and compared.

Knows no method; its time is its caller's selection.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.fusion.base import SelectionContext
from engine.fusion.plan import FusionPlan, Resume
from engine.model.decoder import Rows


class LayerOne(NamedTuple):
    """All tokens at layer 1, whose K and V are in the cache: `rows` of all, hidden [T, hidden] behind layer 0.

    deviation: float32 [N], squared L2 distance of each document token's fresh value to its stored one, over all KV heads.
    """

    rows: Rows
    hidden: Tensor
    deviation: Tensor


def compute_layer_one(context: SelectionContext) -> LayerOne:
    """Runs layer 0 on every token and layer 1 up to its keys and values (CacheBlend, arXiv 2405.16444, 4.3)."""
    decoder, cache, prompt = context.decoder, context.cache, context.prompt
    context.check()
    with context.recorder.device("select", 0):
        rows = decoder.rows(torch.arange(prompt.num_tokens))
        hidden = decoder.run_layer(0, decoder.embed(context.ids), rows, cache)
    context.check()
    stored = context.loader.load_values(1)
    with context.recorder.device("select", 1):
        keys, values = decoder.project_kv(1, hidden)
        docs = slice(prompt.system_len, prompt.question_start)
        deviation = (values[docs] - stored[docs]).float().square_().sum(dim=(1, 2))
        decoder.write(1, keys, values, rows, cache)
    return LayerOne(rows, hidden, deviation)


def behind_layer_one(context: SelectionContext, all_tokens: LayerOne, positions: Tensor) -> Resume:
    """Returns the rows at int64 positions [R] behind layer 1, for the pipeline to go on from."""
    decoder = context.decoder
    with context.recorder.device("recompute", 1):
        rows, hidden = decoder.rows(positions), all_tokens.hidden[positions.to(context.ids.device)]
        behind = decoder.attend(1, hidden, decoder.project_query(1, hidden), rows, context.cache)
    return Resume(2, behind)


def resumed(context: SelectionContext, plan: FusionPlan, resume: Resume, counts: Mapping[int, int] | None = None) -> FusionPlan:
    """Returns a plan that goes on from `resume`, with the rows that ran through each layer.

    Args:
        counts: rows by layer where they were not the plan's; all tokens ran through layer 0.
    """
    known = {0: context.prompt.num_tokens, **(counts or {})}
    rows = [known.get(layer, len(plan.rows)) for layer in range(context.decoder.spec.num_layers)]
    return replace(plan, resume=resume, layer_rows=np.asarray(rows, dtype=np.int32))
