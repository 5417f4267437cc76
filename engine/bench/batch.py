"""Several fused requests in one pass against the same requests one after the other, on the same ids, in turn in one run.

What is timed: from the assembled prompts to the last request's first token, selection and loading of stored KV included.
"""

import argparse
import statistics

import msgspec
import torch

from engine.bench.data import load_set
from engine.bench.report import print_json, print_table, spread
from engine.compare import contexts_of, create_methods
from engine.errors import BadRequest
from engine.fusion.batch import BatchPipeline, BatchPrefilled, BatchRequest
from engine.fusion.pipeline import Prefilled
from engine.provenance import provenance
from engine.runtime import Runtime, load_runtime
from engine.settings import Settings
from engine.types import FusionRequest


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench batch", description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="scenarios", help="as of the fuse benchmark")
    parser.add_argument("--methods", default="qcfuse", help="comma-separated, given to the requests in turn")
    parser.add_argument("--ratio", type=float, default=0.2, help="share of document tokens recomputed, from 0 to 1")
    parser.add_argument("--sizes", default="1,2,4", help="requests of a batch, comma-separated")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    args = parser.parse_args(argv)
    sizes = _sizes(args.sizes)
    if args.repeats < 1:
        raise BadRequest(f"--repeats is {args.repeats}; give at least 1 timed round.")
    settings = Settings.from_env()
    data = load_set(args.data, max(sizes), 0)
    runtime = load_runtime(settings.model, settings)
    names = [name.strip() for name in args.methods.split(",")]
    requests = [
        _prepared(runtime, FusionRequest(sample.question, sample.chunks, ratio=args.ratio), names[i % len(names)])
        for i, sample in enumerate(data.samples[: max(sizes)])
    ]
    rows = [_measure(runtime, requests[:size], args.repeats) for size in sizes]
    if not args.json:
        head = ("requests", "tokens", "rows", "one by one s", "together s", "ratio", "max |diff|")
        print_table(head, [_cells(row) for row in rows])
    given = {"data": args.data, "methods": names, "ratio": args.ratio, "repeats": args.repeats}
    print_json({"bench": "batch", **given, "rows": rows, "provenance": msgspec.to_builtins(provenance(runtime))})


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        raise BadRequest(f"--sizes is {text!r}; give whole numbers separated by commas.") from None
    if min(sizes) < 1:
        raise BadRequest(f"--sizes is {text!r}; a batch has at least 1 request.")
    return sizes


def _prepared(runtime: Runtime, request: FusionRequest, name: str) -> BatchRequest:
    method = create_methods([name], request)[name]
    context = contexts_of([method], request)[-1]
    prepared = runtime.prepare(request, contexts=(context,))
    return BatchRequest(method, prepared.prompt, prepared.placed[context])


def _measure(runtime: Runtime, requests: list[BatchRequest], repeats: int) -> dict[str, object]:
    """Returns the times of requests one by one and together, in rounds of which the first is not counted, and how far they differ."""
    pipeline = BatchPipeline(runtime.pipeline)
    cache = pipeline.cache(requests, 1)
    alone_s, together_s = [], []
    for i in range(repeats + 1):
        alone = [_alone(runtime, request) for request in requests]
        together = pipeline.prefill(requests, cache)
        if i:
            alone_s.append(sum(done.ttft_s for done in alone))
            together_s.append(together.ttft_s)
    return {
        "num_requests": len(requests),
        "num_tokens": sum(request.prompt.num_tokens for request in requests),
        "num_rows": sum(len(done.plan.rows) for done in alone),
        "alone_s": spread(alone_s),
        "together_s": spread(together_s),
        "ratio": statistics.median(together_s) / statistics.median(alone_s),
        "max_abs_diff": _largest_difference(alone, together),
        "same_plans": all(a.plan.rows.tolist() == b.plan.rows.tolist() for a, b in zip(alone, together.requests, strict=True)),
    }


def _alone(runtime: Runtime, request: BatchRequest) -> Prefilled:
    cache = runtime.pool.get("method", request.prompt.num_tokens + 1)
    return runtime.pipeline.prefill(request.method, request.prompt, request.placed, cache)


def _largest_difference(alone: list[Prefilled], together: BatchPrefilled) -> float:
    """Returns the largest difference of the first tokens' logits."""
    pairs = zip(alone, together.requests, strict=True)
    return max(float(torch.max((a.logits - b.logits).abs())) for a, b in pairs)


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    alone, together = (row[name]["median"] for name in ("alone_s", "together_s"))  # type: ignore[index]
    counts = (str(row["num_requests"]), f"{row['num_tokens']:,}", f"{row['num_rows']:,}")
    return (*counts, f"{alone:.3f}", f"{together:.3f}", f"{row['ratio']:.3f}", f"{row['max_abs_diff']:.1e}")
