"""The question run over the whole stored context, layer by layer: what rivals do that look before they choose."""

from collections.abc import Iterable

import torch
from torch import Tensor

from engine.fusion.base import SelectionContext, question_rows


def full_view_scores(context: SelectionContext, layers: Iterable[int], reduction: str) -> Tensor:
    """Returns float32 [N]: scores of the document tokens, mean over `layers`, of the question over the full cached context.

    Every stored layer up to the deepest is loaded for it and stays in the request's cache. The softmax runs over the
    system part, all document keys and the question segment's own keys up to each question token.
    """
    decoder, prompt, cache = context.decoder, context.prompt, context.cache
    wanted = sorted(set(layers))
    at = question_rows(prompt)
    first = prompt.question_span[0] - prompt.question_start
    asked = torch.arange(*prompt.question_span, device=context.ids.device)
    total = torch.zeros(prompt.num_doc_tokens, device=context.ids.device)
    context.loader.start()
    with context.recorder.device("probe", 0):
        rows, states = decoder.rows(at), decoder.embed(context.ids)
        keys, values = decoder.project_kv(0, states)
        decoder.write(0, keys, values, decoder.rows(torch.arange(prompt.num_tokens)), cache)
        hidden = states[at.to(states.device)]
    for layer in range(wanted[-1] + 1):
        context.check()
        context.loader.place(layer)
        with context.recorder.device("probe", layer):
            p = decoder.project(layer, hidden)
            decoder.write(layer, p.keys, p.values, rows, cache)
            if layer in wanted:
                query = decoder.rotated(p.query[first:], rows.cos[first:], rows.sin[first:])
                scores = decoder.ops.token_scores(query, cache.keys[layer, : prompt.question_span[1]], asked, reduction)
                total += scores[prompt.system_len : prompt.question_start]
            if layer < wanted[-1]:
                hidden = decoder.attend(layer, hidden, p.query, rows, cache)
    return total / len(wanted)
