"""Whole requests on Triton kernels, interpreted, give the rows, logits and text of the torch path: alone, as a batch, and decoded."""

from dataclasses import replace

import pytest
import torch
from kernel_samples import HAS_GPU
from worlds import TEXTS, lighthouse, tiny_runtime

from engine.fusion import METHODS
from engine.fusion.batch import BatchPipeline, BatchRequest
from engine.fusion.decode import decode
from engine.fusion.pipeline import FusionPipeline
from engine.fusion.steps import DecodeSteps
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from kernels.ops import load_ops

pytestmark = pytest.mark.skipif(HAS_GPU, reason="the tiny model is on the CPU, where these kernels run in the interpreter alone")
METHODS_ASKED = {"qcfuse": METHODS.create("qcfuse", ratio=0.2), "reuse": METHODS.create("reuse")}


def load_merging_ops(merged):
    """Returns the Triton set, which adds to `merged` the shape of what it merges in one pass."""
    ops = load_ops("triton", "cpu")

    def merge(stored, fresh, *others):
        merged.append(tuple(fresh.keys.shape))
        ops.rotate_scatter_keys(stored, fresh, *others)

    return replace(ops, rotate_scatter_keys=merge)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A tiny runtime, and requests of unequal lengths, each with what the torch path makes of it: first token, cache, answer."""
    runtime = tiny_runtime(tmp_path_factory.mktemp("cache"))
    cases = {}
    for (name, method), texts in zip(METHODS_ASKED.items(), (TEXTS[:2], TEXTS[2:]), strict=True):
        prepared = runtime.prepare(lighthouse(texts))
        prompt, placed = prepared.prompt, prepared.placed["system"]
        cache = RequestCache(runtime.model.spec, prompt.num_tokens + 4, runtime.model.dtype, runtime.model.device)
        done = runtime.pipeline.prefill(method, prompt, placed, cache)
        text = decode(runtime.decoder, done.logits, prompt.num_tokens, cache, 3, end_ids=()).ids.tolist()
        cases[name] = (BatchRequest(method, prompt, placed), done, cache, text)
    return runtime, cases


def test_an_engine_gives_the_same_answer_on_triton(world):
    runtime, cases = world
    asked, expected, law, text = cases["qcfuse"]
    merged = []
    decoder = Decoder(runtime.model, load_merging_ops(merged))
    pipeline = FusionPipeline(decoder, runtime.anchors, runtime.calibration.layers)
    total = asked.prompt.num_tokens
    cache = RequestCache(runtime.model.spec, total + 4, runtime.model.dtype, runtime.model.device)
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    got = pipeline.prefill(asked.method, asked.prompt, asked.placed, cache)
    assert got.plan.rows.tolist() == expected.plan.rows.tolist()
    # Layer 0 is exact from the embeddings, and the critical layer's keys were in the cache already.
    spec = runtime.model.spec
    assert merged == [(len(got.plan.rows), spec.num_kv_heads, spec.head_dim)] * (spec.num_layers - 2)
    torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(cache.keys[:, :total], law.keys[:, :total], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(cache.values[:, :total], law.values[:, :total], rtol=1e-4, atol=1e-4)
    assert decode(decoder, got.logits, total, cache, 3, end_ids=()).ids.tolist() == text


def test_a_batch_on_triton_equals_each_request_alone(world):
    runtime, cases = world
    merged = []
    decoder = Decoder(runtime.model, load_merging_ops(merged))
    batch = BatchPipeline(FusionPipeline(decoder, runtime.anchors, runtime.calibration.layers))
    requests = [asked for asked, _, _, _ in cases.values()]
    cache = batch.cache(requests, 4)
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    done = batch.prefill(requests, cache)
    assert len({shape[0] for shape in merged}) == 2
    for (asked, expected, law, text), got, share in zip(cases.values(), done.requests, cache.shares, strict=True):
        total = asked.prompt.num_tokens
        assert got.plan.rows.tolist() == expected.plan.rows.tolist()
        torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(share.keys[:, :total], law.keys[:, :total], rtol=1e-4, atol=1e-4)
        assert decode(runtime.decoder, got.logits, total, share, 3, end_ids=()).ids.tolist() == text


def test_steps_on_fixed_memory_answer_the_same_on_triton(world):
    runtime, cases = world
    asked, expected, law, text = cases["reuse"]
    decoder, captured = Decoder(runtime.model, load_ops("triton", "cpu")), []

    def capture(compute):
        captured.append(compute)
        return compute

    steps, total = DecodeSteps(decoder, capture), asked.prompt.num_tokens
    # Whatever stands behind the answer so far is nobody's to read.
    law.keys[:, total:], law.values[:, total:] = float("nan"), float("nan")
    got = decode(decoder, expected.logits, total, law, 3, end_ids=(), steps=steps).ids.tolist()
    assert got == text and len(captured) == 1 and steps.hindrance is None
