"""A batch of requests in one pass: each has the plan, logits, KV and answer that it has alone."""

from dataclasses import replace

import pytest
import torch
from laws import TOLERANCE, prefill
from worlds import TEXTS, lighthouse

from engine.compare import create_methods
from engine.errors import Cancelled
from engine.fusion.batch import BatchPipeline, BatchRequest
from engine.fusion.decode import decode
from engine.fusion.pipeline import FusionPipeline
from engine.model.decoder import Decoder
from kernels import reference

# Requests of unequal lengths and plans: which texts, by which method, at which ratio.
MIXES = {
    "unequal": [(TEXTS, "qcfuse", 0.2), (TEXTS[:1], "reuse", 0.0), (TEXTS[1:], "full", 1.0), (TEXTS[::-1], "qcfuse", 0.5)],
    "joining late": [(TEXTS[:2], "cacheblend", 0.3), (TEXTS, "epic", 0.1), (TEXTS[2:], "cacheblend", 0.6)],
    "read otherwise": [(TEXTS, "ape", 0.0), (TEXTS[:3], "qcfuse+k_shift", 0.3), (TEXTS[1:], "qcall", 0.3)],
    "one": [(TEXTS, "qcfuse", 0.35)],
}
NEW_TOKENS = 5


def run_batch(world, mix, cancelled=lambda: False, **ops):
    """Returns the batch's pipeline, its cache full of NaN beforehand, and its result; ops: operations that replace the decoder's."""
    runtime = world.runtime
    own = runtime.decoder if not ops else Decoder(runtime.model, replace(runtime.decoder.ops, **ops))
    pipeline = BatchPipeline(FusionPipeline(own, runtime.anchors, runtime.pipeline.critical_layers))
    requests = []
    for texts, name, ratio in MIXES[mix]:
        request = lighthouse(texts, ratio=ratio)
        method = create_methods([name], request)[name]
        context = method.chunk_context or request.chunk_context
        prepared = runtime.prepare(request, contexts=(context,))
        requests.append(BatchRequest(method, prepared.prompt, prepared.placed[context]))
    cache = pipeline.cache(requests, NEW_TOKENS)
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    return own, cache, pipeline.prefill(requests, cache, cancelled)


def assert_each_equals_itself_alone(world, mix, decoder, cache, done):
    for (texts, name, ratio), share, got in zip(MIXES[mix], cache.shares, done.requests, strict=True):
        alone = prefill(world, name, lighthouse(texts, ratio=ratio))
        total = alone.prompt.num_tokens
        assert got.plan.rows.tolist() == alone.plan.rows.tolist() and got.loaded_bytes == alone.result.loaded_bytes
        torch.testing.assert_close(got.logits, alone.result.logits, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(share.keys[:, :total], alone.cache.keys[:, :total], **TOLERANCE)
        torch.testing.assert_close(share.values[:, :total], alone.cache.values[:, :total], **TOLERANCE)
        # What lies behind a request's last token is nobody's and was not touched.
        assert share.keys[:, total:].isnan().all() and share.values[:, total:].isnan().all()
        answers = [
            decode(world.runtime.decoder, d.logits, total, kv, NEW_TOKENS, end_ids=()).ids.tolist()
            for d, kv in ((got, share), (alone.result, alone.cache))
        ]
        assert answers[0] == answers[1]


@pytest.mark.parametrize("mix", MIXES)
def test_a_batch_equals_each_request_alone(world, mix):
    assert_each_equals_itself_alone(world, mix, *run_batch(world, mix))


@pytest.mark.parametrize("mix", ["unequal", "joining late"])
def test_one_ragged_attention_serves_all_requests(world, mix):
    calls = []

    def attend(query, keys, values, rows, window, sinks):
        calls.append(rows.num_rows)
        return reference.sparse_prefill_attention(query, keys, values, rows, window, sinks)

    assert_each_equals_itself_alone(world, mix, *run_batch(world, mix, sparse_prefill_attention=attend))
    num_layers = world.runtime.model.spec.num_layers
    assert len(calls) == num_layers and calls[-1] == (1,) * len(MIXES[mix])


def test_a_cancelled_batch_closes_every_reader_and_leaves_the_next_alone(world):
    calls = iter(range(100))
    with pytest.raises(Cancelled):
        run_batch(world, "unequal", cancelled=lambda: next(calls) >= 3)
    assert_each_equals_itself_alone(world, "unequal", *run_batch(world, "unequal"))
