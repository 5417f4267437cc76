"""Time to first token and quality of fusion methods over samples, against full prefill of the same ids.

What is timed: from the assembled prompt to the first token's logits, selection and loading of stored KV included.
A sample's speed-up is a ratio of its medians over the rounds. A run that was stopped goes on with the same command.
Answers are each method's own greedy ones; tokens that another method's answer shares with it are checked many at a time, not written
one by one, unless run files are asked for, which show when each came.
"""

import argparse
import math
import resource
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.bench.comparisons import compare_pairs
from engine.bench.configs import parse_configs, writing_labels
from engine.bench.costs import build_costs
from engine.bench.data import LoadedSet, load_set, set_names
from engine.bench.data.check import data_report
from engine.bench.equal_quality import equal_quality
from engine.bench.harness import Job, LeftOut, Measured, job_key, measure, warm_up
from engine.bench.journal import Journal
from engine.bench.outputs import check_file, check_folder, write_csv
from engine.bench.report import print_json, write_json
from engine.bench.summary import summary_rows
from engine.bench.tables import print_results
from engine.bench.validate import beyond_context, token_packing
from engine.errors import BadRequest
from engine.provenance import provenance
from engine.runtime import Runtime, load_runtime
from engine.settings import Settings
from engine.types import CHUNK_CONTEXTS, Provenance, Span

FORMAT = "fusescope-results/1"
MAX_REPEATS, AIMED_ROUNDS = 3, 24


class Loaded(NamedTuple):
    """The model and the samples."""

    runtime: Runtime
    data: LoadedSet


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError; SystemExit 130 where it was stopped by Ctrl-C."""
    args = _parser().parse_args(argv)
    configs = parse_configs(args.methods, args.ratios)
    generate = writing_labels(configs, args.answers)
    _check(args)
    settings = Settings.from_env()
    settings = replace(settings, page_cache=args.page_cache or settings.page_cache)
    runtime, data = _load(args, settings)
    repeats = args.repeats or automatic_repeats(len(data.samples))
    job = Job(tuple(data.samples), configs, generate, repeats, args.max_new_tokens, args.context, args.seed)
    left_out = _left_out(runtime, job, every=args.methods == "all")
    job = replace(job, configs=tuple(c for c in configs if c.method not in {method.name for method in left_out}))
    journal = Journal(settings.cache_dir / "bench" / f"{job_key(runtime, job)}.jsonl", args.fresh)
    try:
        measured = measure(runtime, job, journal, args.runs)
    except KeyboardInterrupt:
        done = f"{len(journal.records)} of {len(job.samples)} samples are kept"
        print(f"\nStopped; {done}. The same command goes on from there, --fresh begins anew.", file=sys.stderr)
        raise SystemExit(130) from None
    result = _result(args, argv, runtime, job, data, measured, left_out)
    if not args.json:
        print_results(result)
    if args.csv:
        write_csv(args.csv, measured.records, job.configs)
    if args.out:
        write_json(result, args.out)
    print_json(result)
    journal.remove()


def _check(args: argparse.Namespace) -> None:
    """Raises BadRequest where something would fail after hours that can be seen now."""
    if args.repeats < 0:
        raise BadRequest(f"--repeats is {args.repeats}; give the rounds a sample, or 0 for as many as fit the number of samples.")
    check_file("--out", args.out)
    check_file("--csv", args.csv)
    check_folder("--runs", args.runs)


def _load(args: argparse.Namespace, settings: Settings) -> Loaded:
    """Returns the model and the samples. Without a count in tokens the data is read, and found at fault, before the model."""
    runtime = load_runtime(settings.model, settings) if args.pack_tokens else None
    packing = token_packing(args.pack_tokens, runtime.prompts if runtime else None)
    data = load_set(args.data, args.n, args.seed, skip_bad=args.skip_bad, packing=packing, skip=args.skip)
    return Loaded(runtime or load_runtime(settings.model, settings), data)


def _left_out(runtime: Runtime, job: Job, every: bool) -> list[LeftOut]:
    """Returns the methods that this model cannot run, all warmed up. Raises BadRequest for one that was asked for by name."""
    left_out = warm_up(runtime, job)
    if left_out and not every:
        raise BadRequest(left_out[0].reason)
    for method in left_out:
        print(f"left out {method.name}: {method.reason}", file=sys.stderr)
    return left_out


def automatic_repeats(num_samples: int) -> int:
    """Returns the rounds a sample: more where there are few samples, so that long comparisons end in time."""
    return min(MAX_REPEATS, max(1, math.ceil(AIMED_ROUNDS / num_samples)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.bench fuse", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", default="scenarios", help=f"{', '.join(set_names())}, or the path of a JSONL file; ruler-mq:2400 has about 2,400 tokens"
    )
    parser.add_argument("--methods", default="full,reuse,qcfuse", help="comma-separated, with additions as in qcfuse+primed, or all")
    parser.add_argument("--ratios", default="0.1,0.2,0.3,0.5", help="recompute ratios of the methods that have one")
    parser.add_argument(
        "--answers", help="ratios at which answers are written, all otherwise; at others gold NLL and KL alone are measured"
    )
    parser.add_argument("--n", type=int, default=8, help="number of samples")
    parser.add_argument("--skip", type=int, default=0, help="samples at the front of the set's order to leave out, as what was tuned on")
    parser.add_argument("--repeats", type=int, default=0, help="timed rounds a sample; 0 takes 1 to 3, fewer for more samples")
    parser.add_argument("--max-new-tokens", type=int, default=24)
    parser.add_argument("--context", default="system", choices=CHUNK_CONTEXTS, help="what a chunk saw when its cache was computed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--page-cache", choices=("kept", "dropped", "direct"), help="what reads of chunk files meet; FUSESCOPE_PAGE_CACHE otherwise"
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave out broken lines of a file and count them")
    parser.add_argument(
        "--pack-tokens", type=int, default=0, help="join short passages to this many tokens (the papers: 512), not to 120-300 words"
    )
    parser.add_argument("--runs", type=Path, help="folder for a run file of every sample, which the page can show")
    parser.add_argument("--csv", type=Path, help="file for one row a sample, method and ratio")
    parser.add_argument("--out", type=Path, help="file for the JSON, indented")
    parser.add_argument("--fresh", action="store_true", help="measure anew what an unfinished run of this command has left")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser


def _result(
    args: argparse.Namespace, argv: list[str], runtime: Runtime, job: Job, data: LoadedSet, measured: Measured, left_out: list[LeftOut]
) -> dict[str, object]:
    """Returns the benchmark's outcome, of JSON's types; all but peak memory and provenance comes from the records."""
    records = measured.records
    costs = build_costs(records)
    result = {
        "bench": "fuse",
        "format": FORMAT,
        "data": args.data,
        "n": len(records),
        "repeats": job.repeats,
        "context": job.context,
        "seed": job.seed,
        "max_new_tokens": job.max_new_tokens,
        "critical_layers": list(runtime.calibration.layers),
        "rows": summary_rows(records, job.configs, costs),
        "comparisons": compare_pairs(records, job.configs),
        "latency_at_equal_quality": equal_quality(records, job.configs),
        "costs": costs,
        "data_report": data_report(data.samples, data.bad_lines, beyond_context(runtime.prompts, job.max_new_tokens)),
        "skipped": len(measured.skipped),
        "skipped_samples": [{"id": sample.name, "reason": sample.reason} for sample in measured.skipped],
        "left_out_methods": [{"method": method.name, "reason": method.reason} for method in left_out],
        "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "resumed": measured.resumed,
        "command": shlex.join(["python", "-m", "engine.bench", "fuse", *argv]),
        "provenance": msgspec.to_builtins(_provenance(runtime, measured)),
    }
    yes_no = [record for record in records if record.is_yes_no]
    return result | {"rows_yes_no": summary_rows(yes_no, job.configs, build_costs(yes_no))} if yes_no else result


def _provenance(runtime: Runtime, measured: Measured) -> Provenance:
    """Returns where the numbers come from, the commits of records from before included."""
    records = measured.records
    reads = Span("disk", "load", -1, 0.0, sum(record.disk_s for record in records), sum(record.disk_bytes for record in records))
    return replace(provenance(runtime, [reads]), commit=", ".join(dict.fromkeys(record.commit for record in records)))
