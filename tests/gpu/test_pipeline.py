"""The request pipeline on a GPU: pinned reads, copies on a stream of their own, the same numbers as on the CPU."""

import os

import pytest
import torch
from request_checks import check_requests
from sections import CHECKED_ON_GPU
from shapes import SMALL
from worlds import lighthouse, tiny_runtime

from engine.compare import create_methods
from engine.fusion.pipeline import FusionPipeline
from engine.model.cache import RequestCache
from engine.model.loader import model_from_hf
from engine.model.tiny import byte_tokenizer, tiny_hf_model
from engine.runtime import Runtime
from engine.settings import Settings

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def gpu_runtime(folder, family):
    device = torch.device("cuda")
    model = model_from_hf(
        tiny_hf_model(family), byte_tokenizer(), f"tiny-{family}", "seed-0", "random weights, seed 0", device, torch.float32
    )
    return Runtime(model, Settings(cache_dir=folder, device="cuda"))


def prefill(runtime, name, depth):
    request = lighthouse()
    method = create_methods([name], request)[name]
    prepared = runtime.prepare(request)
    cache = RequestCache(runtime.model.spec, prepared.prompt.num_tokens, torch.float32, runtime.model.device)
    cache.keys.fill_(float("nan"))
    cache.values.fill_(float("nan"))
    pipeline = FusionPipeline(runtime.decoder, runtime.anchors, runtime.calibration.layers, depth)
    return pipeline.prefill(method, prepared.prompt, prepared.placed["system"], cache), cache


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("name", ["reuse", "qcfuse", "cacheblend"])
def test_pipelined_equals_synchronous_and_the_cpu(tmp_path, family, name):
    runtime = gpu_runtime(tmp_path / "gpu", family)
    ahead, cache = prefill(runtime, name, depth=2)
    in_turn, same = prefill(runtime, name, depth=0)
    assert torch.equal(ahead.logits, in_turn.logits)
    assert torch.equal(cache.keys, same.keys) and torch.equal(cache.values, same.values)
    law, _ = prefill(tiny_runtime(tmp_path / "cpu", family), name, depth=2)
    assert ahead.plan.rows.tolist() == law.plan.rows.tolist()
    torch.testing.assert_close(ahead.logits.cpu(), law.logits, rtol=1e-3, atol=1e-3)


def test_copies_are_spans_with_their_bytes(tmp_path):
    runtime = gpu_runtime(tmp_path, "llama")
    done, _ = prefill(runtime, "reuse", depth=2)
    read = {span.layer: span.size_bytes for span in done.spans if span.lane == "disk"}
    copied = {span.layer: span.size_bytes for span in done.spans if span.lane == "copy"}
    # Every slot is copied whole, read or not, so a copy may hold more than its layer's reads but never less.
    assert read and set(read) == set(copied) and all(copied[layer] >= size for layer, size in read.items())
    assert {span.layer for span in done.spans if span.stage == "load_wait"} == set(read)


@pytest.mark.skipif(os.environ["TRITON_INTERPRET"] == "1", reason="interpreted kernels prove nothing of a GPU; set TRITON_INTERPRET=0")
def test_one_pass_batch_and_graphs_pass_the_checks_of_the_script():
    rows = list(check_requests(torch.device("cuda"), SMALL, list(CHECKED_ON_GPU.values()), list(CHECKED_ON_GPU)))
    assert len(rows) == len(CHECKED_ON_GPU) + 2 and all(row["is_ok"] for row in rows), rows
