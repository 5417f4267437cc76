"""One method over one tiny model, ready for a law to be checked: what it planned, its filled cache, what it was given."""

from types import SimpleNamespace

import numpy as np
import torch
from worlds import TEXTS, tiny_runtime

from engine.compare import create_methods
from engine.fusion.pipeline import FusionPipeline
from engine.model.cache import RequestCache
from engine.model.primer import find_primer, primers
from engine.model.tiny import tiny_hf_model

TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def law_world(folder, family):
    """Returns a tiny model with its runtime and its transformers twin."""
    runtime = tiny_runtime(folder, family)
    return SimpleNamespace(runtime=runtime, hf=tiny_hf_model(family), prefixes=lambda context: prefixes(runtime, context))


def prefixes(runtime, context):
    """Returns, per chunk of the usual request, the ids of all that it is computed behind."""
    tokenize, system = runtime.prompts.tokenize, runtime.prompts.system.ids
    primed = [np.concatenate([system, tokenize(primer.text).ids]) for primer in primers()]
    chosen = np.concatenate([system, tokenize(find_primer(runtime.model.spec.name).text).ids])
    later = {"alone": [system[:0]], "system": [system], "primed-mean": primed}.get(context, [chosen])
    return [later if context in ("alone", "primed-one") else [system], *[later] * (len(TEXTS) - 1)]


def prefill(world, name, request, depth=2, cancelled=lambda: False, cache=None):
    """Returns the prompt, the cache and the result of one method, on a cache full of NaN beforehand."""
    runtime, method = world.runtime, create_methods([name], request)[name]
    context = method.chunk_context or request.chunk_context
    prepared = runtime.prepare(request, contexts=(context,))
    prompt, placed = prepared.prompt, prepared.placed[context]
    if cache is None:
        cache = RequestCache(runtime.model.spec, prompt.num_tokens + 16, torch.float32, torch.device("cpu"))
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    own = runtime.pipeline
    pipeline = FusionPipeline(runtime.decoder, runtime.anchors, own.critical_layers, depth, own.head_weights)
    result = pipeline.prefill(method, prompt, placed, cache, cancelled)
    return SimpleNamespace(prompt=prompt, placed=placed, cache=cache, result=result, method=method, plan=result.plan)


def filled(done, part):
    return getattr(done.cache, part)[:, : done.prompt.num_tokens]
