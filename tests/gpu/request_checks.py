"""Whole requests before anything is timed: one pass against two steps, a batch against each alone, graphs against eager decoding.

On random weights in float32, so that what differs is an error and not rounding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from model_8b import random_model, random_request
from shapes import Shape
from torch import Tensor

from engine.chunks.anchors import AnchorBank
from engine.fusion import METHODS
from engine.fusion.base import FusionMethod
from engine.fusion.batch import BatchPipeline, BatchRequest
from engine.fusion.decode import decode
from engine.fusion.pipeline import FusionPipeline, Prefilled
from engine.fusion.steps import DecodeSteps
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.model.loader import LoadedModel
from kernels.ops import KernelOps, load_ops

# Of the largest absolute logit.
TOLERANCE = 1e-3
NEW_TOKENS = 4
Row = dict[str, object]


class Done(NamedTuple):
    """A request that was run alone: its first token, its cache and its answer."""

    first: Prefilled
    cache: RequestCache
    answer: list[int]


def check_requests(device: torch.device, shape: Shape, lengths: Sequence[int], methods: Sequence[str]) -> Iterator[Row]:
    """Yields a row for each check: what it is called, the largest difference as a share of the largest number, whether that is ok.

    Args:
        lengths: context tokens of each request, one for each method.
    """
    model, merged = random_model(shape, device, torch.float32), list[int]()
    law, own = (
        _pipeline(model, shape, ops) for ops in (load_ops("torch", device.type), _counting(load_ops("triton", device.type), merged))
    )
    requests = [
        BatchRequest(_method(name), *random_request(model, shape, num_context, num_question=16 + 5 * i))
        for i, (name, num_context) in enumerate(zip(methods, lengths, strict=True))
    ]
    alone = []
    for name, request in zip(methods, requests, strict=True):
        merged.clear()
        expected, got = _alone(law, request), _alone(own, request)
        alone.append(got)
        difference = max(_difference(got.first.logits, expected.first.logits), _kv_difference(request, got.cache, expected.cache))
        same = got.first.plan.rows.tolist() == expected.first.plan.rows.tolist() and got.answer == expected.answer
        # Full prefill has nothing to merge, CacheBlend but the layers behind its first two.
        is_ok = same and difference < TOLERANCE and (bool(merged) or name == "full")
        yield {"check": f"{name} in one pass", "max_difference": difference, "layers_merged": len(merged), "is_ok": is_ok}
    yield _check_batch(own, requests, alone)
    yield _check_steps(own, requests[-1], alone[-1], device)


def _check_batch(pipeline: FusionPipeline, requests: Sequence[BatchRequest], alone: Sequence[Done]) -> Row:
    """Returns how far the requests of one batch are from each alone."""
    batch = BatchPipeline(pipeline)
    cache = batch.cache(requests, NEW_TOKENS)
    together = batch.prefill(requests, cache)
    differences, same = [], True
    for request, got, share, law in zip(requests, together.requests, cache.shares, alone, strict=True):
        differences += [_difference(got.logits, law.first.logits), _kv_difference(request, share, law.cache)]
        same &= got.plan.rows.tolist() == law.first.plan.rows.tolist()
        same &= _decode(pipeline.decoder, got.logits, request, share) == law.answer
    return {"check": f"a batch of {len(requests)}", "max_difference": max(differences), "is_ok": same and max(differences) < TOLERANCE}


def _check_steps(pipeline: FusionPipeline, request: BatchRequest, law: Done, device: torch.device) -> Row:
    """Returns whether steps captured once, on a GPU as a CUDA graph, write the same answer twice behind the same cache."""
    steps = DecodeSteps(pipeline.decoder, None if device.type == "cuda" else lambda compute: compute)
    answers = [_decode(pipeline.decoder, law.first.logits, request, law.cache, steps) for _ in range(2)]
    is_ok = answers == [law.answer] * 2 and steps.hindrance is None
    return {"check": "decode by repeated steps", "max_difference": None, "hindrance": steps.hindrance, "is_ok": is_ok}


def _pipeline(model: LoadedModel, shape: Shape, ops: KernelOps) -> FusionPipeline:
    decoder = Decoder(model, ops)
    return FusionPipeline(decoder, AnchorBank(decoder), (shape.critical_layer,))


def _counting(ops: KernelOps, merged: list[int]) -> KernelOps:
    """Returns the set, which notes the fresh rows of every layer it merges."""

    def merge(stored, fresh, *others):  # type: ignore[no-untyped-def]
        merged.append(fresh.keys.shape[0])
        ops.rotate_scatter_keys(stored, fresh, *others)

    return replace(ops, rotate_scatter_keys=merge)


def _method(name: str) -> FusionMethod:
    return METHODS.create(name) if name in ("full", "reuse") else METHODS.create(name, ratio=0.3)


def _alone(pipeline: FusionPipeline, request: BatchRequest) -> Done:
    decoder = pipeline.decoder
    cache = RequestCache(decoder.spec, request.prompt.num_tokens + NEW_TOKENS, decoder.dtype, decoder.device)
    first = pipeline.prefill(request.method, request.prompt, request.placed, cache)
    return Done(first, cache, _decode(decoder, first.logits, request, cache))


def _decode(decoder: Decoder, logits: Tensor, request: BatchRequest, cache: RequestCache, steps: DecodeSteps | None = None) -> list[int]:
    return decode(decoder, logits, request.prompt.num_tokens, cache, NEW_TOKENS, end_ids=(), steps=steps).ids.tolist()


def _kv_difference(request: BatchRequest, got: RequestCache, law: RequestCache) -> float:
    at: Callable[[Tensor], Tensor] = lambda kv: kv[:, : request.prompt.num_tokens]  # noqa: E731
    return max(_difference(at(got.keys), at(law.keys)), _difference(at(got.values), at(law.values)))


def _difference(got: Tensor, law: Tensor) -> float:
    """Returns the largest difference as a share of the largest number; infinite where one is not a number."""
    share = (got - law).abs().max() / law.abs().max()
    return float(torch.nan_to_num(share, nan=float("inf")))
