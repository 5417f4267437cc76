"""Where the kernels put a layer's stored and fresh rows into the cache in one pass, requests come out as in two steps."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from laws import TOLERANCE, filled, prefill
from worlds import TEXTS, lighthouse

from engine.fusion.pipeline import FusionPipeline
from engine.fusion.placing import InOnePass
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from kernels import reference


def one_pass_world(world):
    """Returns the world with a decoder that merges by the reference, and the list of what it merged: fresh rows of each call."""
    merged, runtime = [], world.runtime

    def merge(stored, fresh, source, cos, sin, cache, pages):
        merged.append(fresh.keys.shape[0])
        reference.rotate_scatter_keys(stored, fresh, source, cos, sin, cache, pages)

    decoder = Decoder(runtime.model, replace(runtime.decoder.ops, rotate_scatter_keys=merge))
    parts = {name: getattr(runtime, name) for name in ("model", "prompts", "pipeline", "anchors", "prepare", "store")}
    return SimpleNamespace(runtime=SimpleNamespace(**parts, decoder=decoder), hf=world.hf, prefixes=world.prefixes), merged


# How many of the 3 layers behind the first are merged in one pass: those of which nothing is in the cache yet.
MERGED = {"reuse": 3, "epic": 3, "ape": 3, "qcfuse": 2, "cacheblend": 2, "qcall": 0, "qcfuse+k_shift": 0, "full": 0}


@pytest.mark.parametrize("name", MERGED)
def test_one_pass_equals_two_steps(world, name):
    other, merged = one_pass_world(world)
    request = lighthouse(ratio=0.35)
    expected, got = prefill(world, name, request), prefill(other, name, request)
    assert merged == [len(got.plan.rows)] * MERGED[name]
    assert got.plan.rows.tolist() == expected.plan.rows.tolist()
    torch.testing.assert_close(got.result.logits, expected.result.logits, **TOLERANCE)
    torch.testing.assert_close(filled(got, "keys"), filled(expected, "keys"), **TOLERANCE)
    torch.testing.assert_close(filled(got, "values"), filled(expected, "values"), **TOLERANCE)
    assert got.result.loaded_bytes == expected.result.loaded_bytes


@pytest.mark.parametrize("name", ["reuse", "qcfuse"])
def test_loading_ahead_changes_no_bit(world, name):
    other, merged = one_pass_world(world)
    ahead, in_turn = prefill(other, name, lighthouse(ratio=0.35)), prefill(other, name, lighthouse(ratio=0.35), depth=0)
    assert merged and torch.equal(ahead.result.logits, in_turn.result.logits)
    assert torch.equal(filled(ahead, "keys"), filled(in_turn, "keys"))
    waits = {span.layer for span in ahead.result.spans if span.stage == "load_wait"}
    read = {span.layer: span.size_bytes for span in ahead.result.spans if span.lane == "disk" and span.size_bytes}
    assert waits == set(read) - {0}


def test_what_is_in_the_cache_from_the_start_stays_there(world):
    other, merged = one_pass_world(world)
    law = prefill(world, "reuse", lighthouse(TEXTS[:2]))
    prompt, decoder = law.prompt, other.runtime.decoder
    cache = RequestCache(decoder.spec, prompt.num_tokens, torch.float32, torch.device("cpu"))
    pipeline = FusionPipeline(decoder, other.runtime.anchors, other.runtime.pipeline.critical_layers)

    def fill(target, recorder, cancelled):
        target.keys[:, : prompt.system_len] = law.cache.keys[:, : prompt.system_len]
        target.values[:, : prompt.system_len] = law.cache.values[:, : prompt.system_len]

    placed = [replace(law.placed[0], chunk=None), *law.placed[1:]]
    done = pipeline.prefill(law.method, prompt, placed, cache, fill_prefix=fill)
    assert len(merged) == 3
    torch.testing.assert_close(done.logits, law.result.logits, **TOLERANCE)
    assert torch.equal(cache.keys[1:, : prompt.system_len], law.cache.keys[1:, : prompt.system_len])


def test_the_torch_path_keeps_its_two_steps(world):
    done = prefill(world, "reuse", lighthouse(TEXTS[:2]))
    runtime, rows = world.runtime, torch.from_numpy(done.plan.rows)
    context = runtime.pipeline.selection(done.prompt, done.placed, done.cache)
    placing = runtime.pipeline.placing(context, done.plan, runtime.decoder.rows(rows), None)
    context.loader.close()
    assert not isinstance(placing, InOnePass)
