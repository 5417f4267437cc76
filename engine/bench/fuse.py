"""Time to first token and quality of fusion methods over samples, against full prefill of the same ids.

What is timed: from the assembled prompt to the first token's logits, selection and loading of stored KV included.
Every round runs all methods and ratios of a sample in turn; a sample's speed-up is a ratio of its medians.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from engine.bench.data import Sample, load_samples
from engine.bench.report import interval, print_json, print_table, spread
from engine.compare import Comparison
from engine.errors import BadRequest
from engine.fusion import METHODS
from engine.fusion.base import FusionMethod
from engine.provenance import provenance
from engine.registry import field_names
from engine.runtime import Runtime, load_runtime
from engine.settings import Settings
from engine.types import CHUNK_CONTEXTS, FusionRequest, MethodRun, Run

PARTS = ("probe", "select", "load_wait", "recompute", "head")


class Config(NamedTuple):
    """One method at one ratio; ratio None where the method has none."""

    method: str
    ratio: float | None

    @property
    def label(self) -> str:
        """Returns the name it has inside a run."""
        return self.method if self.ratio is None else f"{self.method}@{self.ratio:g}"


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError."""
    args = _parser().parse_args(argv)
    configs = _configs(args.methods, args.ratios)
    samples = load_samples(args.data, args.n, args.seed)
    settings = Settings.from_env()
    runtime = load_runtime(settings.model, settings)
    runs = _measure(runtime, samples, configs, args)
    rows = [_row(config, runs) for config in configs]
    if not args.json:
        _print(rows)
    print_json(
        {
            "bench": "fuse",
            "data": args.data,
            "n": len(runs),
            "repeats": args.repeats,
            "context": args.context,
            "seed": args.seed,
            "critical_layers": list(runtime.calibration.layers),
            "rows": rows,
            "skipped": len(samples) - len(runs),
            "peak_memory_gib": _peak_memory_gib(),
            "provenance": msgspec.to_builtins(provenance(runtime, [s for run in runs for m in run.methods for s in m.spans])),
        }
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.bench fuse", description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="scenarios", help="scenarios, generated, or the path of a JSONL file")
    parser.add_argument("--methods", default="full,reuse,qcfuse", help="comma-separated, or all")
    parser.add_argument("--ratios", default="0.1,0.2,0.3,0.5", help="recompute ratios of the methods that have one")
    parser.add_argument("--n", type=int, default=8, help="number of samples")
    parser.add_argument("--repeats", type=int, default=3, help="timed rounds a sample")
    parser.add_argument("--max-new-tokens", type=int, default=24)
    parser.add_argument("--context", default="system", choices=CHUNK_CONTEXTS, help="what a chunk saw when its cache was computed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser


def _configs(methods: str, ratios: str) -> list[Config]:
    names = METHODS.names() if methods == "all" else tuple(part.strip() for part in methods.split(","))
    try:
        values = [float(part) for part in ratios.split(",")]
    except ValueError:
        raise BadRequest(f"--ratios is {ratios!r}; give numbers from 0 to 1 separated by commas.") from None
    if any(not 0 <= value <= 1 for value in values):
        raise BadRequest(f"--ratios is {ratios!r}; every ratio must be from 0 to 1.")
    configs = [Config("full", None)]
    for name in names:
        if "ratio" in field_names(METHODS.get(name)):
            configs += [Config(name, value) for value in values]
        elif name != "full":
            configs.append(Config(name, None))
    return configs


def _measure(runtime: Runtime, samples: Sequence[Sample], configs: Sequence[Config], args: argparse.Namespace) -> list[Run]:
    methods = {c.label: _create(c) for c in configs}
    runs, begun = [], time.perf_counter()
    for i, sample in enumerate(samples):
        request = FusionRequest(
            sample.question,
            sample.chunks,
            gold_answers=sample.answers,
            supporting=sample.supporting,
            max_new_tokens=args.max_new_tokens,
            chunk_context=args.context,
            repeats=args.repeats,
            scenario=sample.scenario,
        )
        try:
            prepared = runtime.prepare(request)
        except BadRequest as error:
            print(f"left out {sample.sample_id}: {error}", file=sys.stderr)
            continue
        if not runs:
            _warm_up(runtime, request, methods)
        runs.append(Comparison(runtime, request, prepared).run(methods))
        elapsed = time.perf_counter() - begun
        left = elapsed / (i + 1) * (len(samples) - i - 1)
        print(f"{i + 1}/{len(samples)} {sample.sample_id}, {elapsed:.0f} s, about {left:.0f} s left", file=sys.stderr, flush=True)
    if not runs:
        raise BadRequest("No sample fits the model's context; use shorter passages or another model.")
    return runs


def _create(config: Config) -> FusionMethod:
    return METHODS.create(config.method, **({} if config.ratio is None else {"ratio": config.ratio}))


def _warm_up(runtime: Runtime, request: FusionRequest, methods: dict[str, FusionMethod]) -> None:
    """Runs every method once uncounted, so that no sample pays for first use of memory."""
    prepared = runtime.prepare(request)
    for method in methods.values():
        cache = runtime.pool.get("method", prepared.prompt.num_tokens + 1)
        runtime.pipeline.prefill(method, prepared.prompt, prepared.placed, cache)


def _row(config: Config, runs: Sequence[Run]) -> dict[str, object]:
    pairs = [(run, run.method(config.label), run.method("full")) for run in runs]
    own = [method for _, method, _ in pairs]
    speedups = [full.ttft_s / method.ttft_s for _, method, full in pairs]
    limits = [_limit(config, *pair) for pair in pairs]
    speedup = interval(speedups, np.median, "median")
    limit = statistics.median(limits)
    return {
        "method": config.method,
        "ratio": config.ratio,
        "n": len(runs),
        "N": int(statistics.median(run.num_doc_tokens for run in runs)),
        "q": int(statistics.median(len(run.tokens) - run.question_start for run in runs)),
        "ttft_s": spread([method.ttft_s for method in own]),
        "speedup": speedup,
        "limit": limit,
        "probe_share": statistics.median(method.parts_s.probe / full.ttft_s for _, method, full in pairs),
        "limit_share": statistics.median(gain / most for gain, most in zip(speedups, limits, strict=True)),
        "parts_s": {part: statistics.median(getattr(method.parts_s, part) for method in own) for part in PARTS},
        "rouge_l": _mean(own, "rouge_l"),
        "f1": _mean(own, "f1"),
        "answered": _mean(own, "contains_gold"),
        "gold_nll": _mean(own, "gold_nll"),
        "kl_to_full": interval([method.quality.kl_to_full for method in own]),
        "span_recall": _mean(own, "span_recall"),
        "loaded_mb": statistics.median(method.loaded_bytes for method in own) / 1e6,
    }


def _limit(config: Config, run: Run, method: MethodRun, full: MethodRun) -> float:
    """Returns the compute limit of the speed-up, 1 / (r + q / N + s); s is the probe's measured share of a full prefill."""
    if config.method == "full":
        return 1.0
    num_doc = run.num_doc_tokens
    share = method.parts_s.probe / full.ttft_s
    return 1.0 / ((config.ratio or 0.0) + (len(run.tokens) - run.question_start) / num_doc + share)


def _mean(methods: Sequence[MethodRun], name: str) -> float | None:
    values = [value for method in methods if (value := getattr(method.quality, name)) is not None]
    return statistics.fmean(values) if values else None


def _peak_memory_gib() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _print(rows: Sequence[dict[str, object]]) -> None:
    def show(value: float | None, digits: int = 3) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    header = (
        "method",
        "ratio",
        "TTFT s",
        "speed-up",
        "of limit",
        "probe",
        "select",
        "wait",
        "recompute",
        "answered",
        "ROUGE-L",
        "gold NLL",
        "KL to full",
    )
    print_table(
        header,
        [
            (
                r["method"],
                "-" if r["ratio"] is None else f"{r['ratio']:g}",
                show(r["ttft_s"]["median"]),
                f"{r['speedup']['median']:.2f} [{r['speedup']['lo']:.2f}, {r['speedup']['hi']:.2f}]",
                f"{100 * r['limit_share']:.0f} %",
                *(show(r["parts_s"][part]) for part in PARTS[:4]),
                "-" if r["answered"] is None else f"{100 * r['answered']:.0f} %",
                show(r["rouge_l"]),
                show(r["gold_nll"]),
                f"{r['kl_to_full']['mean']:.3f} [{r['kl_to_full']['lo']:.3f}, {r['kl_to_full']['hi']:.3f}]",
            )
            for r in rows
        ],
    )
