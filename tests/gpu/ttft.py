"""Time to the first token of full prefill, CacheBlend and QCFuse, end to end, with each set of kernels."""

import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict

import torch
from model_8b import random_model, random_request
from shapes import Shape

from engine.chunks.anchors import AnchorBank
from engine.fusion import METHODS
from engine.fusion.base import FusionMethod
from engine.fusion.decode import decode
from engine.fusion.pipeline import FusionPipeline, Prefilled
from engine.fusion.steps import DecodeSteps
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.model.loader import LoadedModel
from kernels.ops import KernelOps

RATIO = 0.3
Row = dict[str, object]


def make_methods() -> dict[str, FusionMethod]:
    """Returns the methods that are timed."""
    return {
        "full": METHODS.create("full"),
        "cacheblend": METHODS.create("cacheblend", ratio=RATIO),
        "qcfuse": METHODS.create("qcfuse", ratio=RATIO),
    }


def time_requests(
    model: LoadedModel, shape: Shape, num_context: int, sets: list[KernelOps], repeats: int, num_answer_tokens: int
) -> list[Row]:
    """Returns a row for each set and method at one length of context: median and spread of the times, their parts, the speed-up,
    and the time of a decoded token, launched anew and, where that can be had, by a CUDA graph.

    Rounds go over all methods of a set; the first warms up and is not counted.
    """
    prompt, placed = random_request(model, shape, num_context)
    rows = []
    for ops in sets:
        decoder = Decoder(model, ops)
        pipeline = FusionPipeline(decoder, AnchorBank(decoder, 2**30), (shape.critical_layer,))
        cache = RequestCache(model.spec, prompt.num_tokens + num_answer_tokens, model.dtype, model.device)
        times: dict[str, list[float]] = {name: [] for name in make_methods()}
        last = {}
        for i in range(repeats + 1):
            for name, method in make_methods().items():
                done = pipeline.prefill(method, prompt, placed, cache)
                if i:
                    times[name].append(done.ttft_s)
                if i == repeats:
                    last[name] = (done, *time_decoding(decoder, done, prompt.num_tokens, cache, num_answer_tokens))
        full_s = statistics.median(times["full"])
        for name, (done, text, decoding) in last.items():
            median_s = statistics.median(times[name])
            rows.append(
                {
                    "method": name,
                    "backend": ops.name,
                    "num_context": prompt.num_doc_tokens,
                    "num_rows": len(done.plan.rows),
                    "ttft_ms": {"median": median_s * 1e3, "min": min(times[name]) * 1e3, "max": max(times[name]) * 1e3},
                    "parts_ms": {part: seconds * 1e3 for part, seconds in asdict(done.parts_s).items()},
                    "loaded_bytes": done.loaded_bytes,
                    "speedup": full_s / median_s,
                    "decode": decoding,
                    "text": text,
                }
            )
        del cache
    _compare_texts(rows)
    return rows


def time_decoding(decoder: Decoder, done: Prefilled, start: int, cache: RequestCache, num_tokens: int) -> tuple[list[int], Row]:
    """Returns the answer's ids, and the median time of a token, launched anew and by a graph, which is captured beforehand."""
    steps, texts, times_ms = DecodeSteps(decoder), [], []
    for by in (None, *(() if steps.hindrance else (steps, steps))):
        answer = decode(decoder, done.logits, start, cache, num_tokens, end_ids=(), steps=by)
        gaps = [later - earlier for earlier, later in itertools.pairwise(answer.times_s.tolist())]
        texts.append(answer.ids.tolist())
        times_ms.append(statistics.median(gaps) * 1e3)
    graph_ms = times_ms[-1] if steps.hindrance is None else None
    same = all(text == texts[0] for text in texts)
    return texts[0], {"eager_ms": times_ms[0], "graph_ms": graph_ms, "hindrance": steps.hindrance, "same_text": same}


def _compare_texts(rows: list[Row]) -> None:
    """Replaces each row's text by whether it equals that of the first set, and by how many tokens at its start do."""
    first: dict[object, list[int]] = {}
    for row in rows:
        text = row.pop("text")
        law = first.setdefault(row["method"], text)
        row["same_text"] = text == law
        row["same_tokens"] = next((i for i, (a, b) in enumerate(zip(text, law, strict=True)) if a != b), len(law))


def time_all(
    shape: Shape,
    lengths: list[int],
    sets: list[KernelOps],
    device: torch.device,
    repeats: int,
    num_answer_tokens: int,
    is_time_left: Callable[[], bool],
) -> Iterator[list[Row]]:
    """Yields the rows of each length, shortest first, as far as there is time and memory."""
    model = random_model(shape, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    for num_context in sorted(lengths):
        if not is_time_left():
            yield [{"num_context": num_context, "skipped": "no time left"}]
            continue
        try:
            yield time_requests(model, shape, num_context, sets, repeats, num_answer_tokens)
        except torch.OutOfMemoryError as error:
            # A smaller GPU: what was timed before is not lost.
            yield [{"num_context": num_context, "failed": str(error).splitlines()[0]}]
