"""The query probe, its anchors and its scores, on both tiny models."""

import math

import numpy as np
import oracle
import pytest
import torch
from laws import TOLERANCE
from worlds import TEXTS, lighthouse

from engine.fusion.probe import context_scores, run_probe
from engine.model.cache import RequestCache


def selection(world, request):
    """Returns a selection context of a request whose chunks are stored."""
    prepared, runtime = world.runtime.prepare(request), world.runtime
    cache = RequestCache(runtime.model.spec, prepared.prompt.num_tokens, torch.float32, torch.device("cpu"))
    return runtime.pipeline.selection(prepared.prompt, prepared.placed[request.chunk_context], cache)


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_all_tokens_as_anchors_equal_a_probe_over_the_whole_cache(world, layer):
    context = selection(world, lighthouse())
    (probe,) = run_probe(context, (layer,), 1.0, "high")
    prompt = context.prompt
    keys, values = oracle.fused_cache(world.hf, prompt, [[prompt.ids[: prompt.system_len]]] * len(TEXTS))
    # Anchors of layer 0 are stored ones too; stored and exact layer 0 are the same.
    rows = np.arange(prompt.question_start, prompt.question_span[1])
    oracle.run_rows(world.hf, prompt.ids, rows, keys, values)
    torch.testing.assert_close(probe.keys, keys[layer][0, :, rows].transpose(0, 1), **TOLERANCE)
    assert probe.anchors.shape == (layer, prompt.question_start)


def test_probe_does_not_depend_on_how_deep_it_goes(world):
    (shallow,) = run_probe(selection(world, lighthouse()), (2,), 0.1, "high")
    deep = run_probe(selection(world, lighthouse()), (1, 2, 3), 0.1, "high")
    assert [probe.layer for probe in deep] == [1, 2, 3]
    assert torch.equal(shallow.query, deep[1].query) and torch.equal(shallow.keys, deep[1].keys)
    assert torch.equal(shallow.anchors, deep[1].anchors[:2])


@pytest.mark.parametrize("direction", ["high", "low"])
def test_anchors_are_the_extreme_key_norms_of_every_chunk(world, direction):
    context = selection(world, lighthouse())
    anchors = context.anchors.gather(context.placed, 3, 0.1, direction).positions
    for p in context.placed[1:]:
        n = p.stop - p.start
        raw = torch.empty(n, context.decoder.spec.num_kv_heads, context.decoder.spec.head_dim)
        for layer in range(3):
            p.chunk.read_keys(layer, raw)
            norms = raw.norm(dim=-1).mean(1)
            picked = [a - p.start for a in anchors[layer].tolist() if p.start <= a < p.stop]
            assert len(picked) == math.ceil(0.1 * n) and picked == sorted(picked)
            rest = [i for i in range(n) if i not in picked]
            if direction == "high":
                assert norms[picked].min() >= norms[rest].max()
            else:
                assert norms[picked].max() <= norms[rest].min()


def test_scores_and_the_mass_on_other_keys_sum_to_one(world):
    context = selection(world, lighthouse())
    (probe,) = run_probe(context, (2,), 0.1, "high")
    cached = context.loader.load_keys(2)
    start, stop = context.prompt.question_span
    scores = context.decoder.ops.token_scores(probe.query, torch.cat([cached, probe.keys]), torch.arange(start, stop), "mean")
    assert float(scores.sum()) == pytest.approx(1.0, abs=1e-5)
    expected = context_scores(selection(world, lighthouse()), probe, "mean")
    assert torch.equal(scores[context.prompt.system_len : context.prompt.question_start], expected)
