"""Eviction policies replayed over generated workloads and recorded logs: hit rates, modelled times, the gap to MIN that they close.

SIMULATED: requests take no time and no model runs; `modelled_ttft_s` is the mean of f(prompt) - f(hit) over the second half, f the stated
prefill cost or that of a model timed on this machine. Intervals are over seeds, or over 100 stretches of the log where there is one
seed. Needs torch only for `--cost model` and for SGLang's tree.
"""

import argparse
import datetime
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.bench.ablations import ablation_rows, print_ablations
from engine.bench.accuracy import parse_accuracy
from engine.bench.intervals import Interval, interval, resampled
from engine.bench.progress import Steps
from engine.bench.replay_scaling import scaling_rows
from engine.bench.report import print_json, print_table, write_json
from engine.cache_types import CacheRun
from engine.checkout import commit
from engine.errors import BadRequest
from engine.prefix.cachefile import save_cache_run
from engine.prefix.cost import PUBLISHED_8B, PrefillCost
from engine.prefix.lab import LIMIT, ReplayLab, gap_closed, lab_names, lab_policy, run_name
from engine.prefix.policies import POLICIES
from engine.prefix.predictor_rule import SessionRule, load_rule
from engine.prefix.workloads.arrivals import Arrivals, fixed, recorded
from engine.prefix.workloads.azure import azure_arrivals
from engine.prefix.workloads.catalog import load_workload, workload_names
from engine.settings import Settings

FORMAT, BASELINE, NUM_STRETCHES, RULE = "fusescope-evictions/2", "lru", 100, "rule"


class Predictor(NamedTuple):
    """What tells policies whether a session goes on: an oracle wrong as often as said, the logistic rule, or nothing."""

    name: str
    accuracy: float | None
    rule: SessionRule | None = None


class Cell(NamedTuple):
    """One policy at one capacity of one workload: its runs and LRU's, seed by seed."""

    workload: str
    capacity: float
    policy: str
    predictor: str
    runs: list[CacheRun]
    baselines: list[CacheRun]


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError."""
    args = _parser().parse_args(argv)
    capacities = parse_capacities(args.capacity)
    policies = parse_policies(args.policies)
    if args.seeds < 1:
        raise BadRequest(f"--seeds is {args.seeds}; give at least one.")
    predictors, cost = parse_predictors(args.predictor), _cost(args.cost)
    arrivals = _arrivals(args.arrivals)
    if args.runs:
        args.runs.mkdir(parents=True, exist_ok=True)
    rows, ablations, notes, names = [], [], {}, args.workload.split(",")
    told = None if args.quiet else Steps(len(names) * len(predictors) * len(capacities) * len(policies))
    for name in names:
        seeds = range(args.seed, args.seed + args.seeds)
        workloads = [load_workload(name, seed, arrivals) for seed in seeds]
        notes[name] = {"requests": workloads[0].num_requests, "blocks": workloads[0].num_blocks, "notes": workloads[0].notes}
        for predictor in predictors:
            lent = zip(workloads, seeds, strict=True)
            labs = [ReplayLab(workload, seed, predictor.accuracy, cost, predictor.rule) for workload, seed in lent]
            for cell in _cells(labs, predictor.name, capacities, policies, told):
                rows.append(row(cell))
                if args.runs:
                    save_cache_run(cell.runs[0], args.runs / run_name(cell.runs[0]))
            if args.ablations:
                ablations += ablation_rows(labs, predictor.name, capacities, args.quiet)
    result = {
        "bench": "evict",
        "format": FORMAT,
        "mode": "simulated",
        "seeds": args.seeds,
        "predictor": args.predictor,
        "cost": f"{cost.name}: {cost.source}",
        "workloads": notes,
        "rows": rows,
        "command": shlex.join(["python", "-m", "engine.bench", "evict", *argv]),
        "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
    }
    if args.ablations:
        result["ablations"] = ablations
    if args.scaling:
        result["scaling"] = scaling_rows(policies)
    if not args.json:
        print_rows(rows)
        print_ablations(ablations)
        if args.scaling:
            print_table(
                ("policy", "capacity in blocks", "us/eviction"),
                [(r["policy"], f"{r['capacity_blocks']:,}", f"{r['us_per_eviction']:.1f}") for r in result["scaling"]],
            )
    if args.out:
        write_json(result, args.out)
    print_json(result)


def parse_capacities(text: str) -> list[float]:
    """Returns capacities: shares of the distinct blocks below 1, blocks from 1 on. Raises BadRequest."""
    try:
        capacities = [float(part) for part in text.split(",")]
    except ValueError:
        raise BadRequest(f"--capacity is {text!r}; give numbers separated by commas, as 0.01,0.05 or 4000.") from None
    for capacity in capacities:
        if not (math.isfinite(capacity) and capacity > 0):
            raise BadRequest(f"--capacity has {capacity:g}; give a share of the distinct blocks below 1, or a number of blocks.")
    return capacities


def parse_policies(text: str) -> list[str]:
    """Returns policy names, LRU first; `all` is every one of ours, SGLang's tree has to be named. Raises UnknownName."""
    names = list(POLICIES.names()) if text == "all" else text.split(",")
    for name in names:
        lab_policy(name)
    return [BASELINE, *(name for name in dict.fromkeys(names) if name != BASELINE)]


def parse_predictors(text: str) -> list[Predictor]:
    """Returns the predictors of a comma-separated list, each name once. Raises BadRequest."""
    found = []
    for name in dict.fromkeys(text.split(",")):
        found.append(Predictor(name, None, load_rule()) if name == RULE else Predictor(name, parse_accuracy(name, f"none, {RULE}, oracle")))
    return found


def row(cell: Cell) -> dict[str, object]:
    """Returns one line of the results, of JSON's types."""
    gaps = [gap_closed(run, lru) for run, lru in zip(cell.runs, cell.baselines, strict=True)]
    return {
        "workload": cell.workload,
        "capacity": cell.capacity,
        "capacity_blocks": cell.runs[0].capacity_blocks,
        "policy": cell.policy,
        "predictor": cell.predictor,
        "n": len(cell.runs),
        "hit_tokens": _rate(cell.runs, "hit_tokens", "prompt_tokens", 0.0),
        "hit_blocks": _rate(cell.runs, "hit_blocks", "prompt_blocks", 0.0),
        "hit_tokens_second_half": _rate(cell.runs, "hit_tokens", "prompt_tokens", 0.5),
        "hit_blocks_second_half": _rate(cell.runs, "hit_blocks", "prompt_blocks", 0.5),
        "modelled_ttft_s": _named(interval(np.array([run.second_half.modelled_ttft_s for run in cell.runs]))),
        "ttft_to_lru": _named(interval(np.array([_ttft_ratio(run, lru) for run, lru in zip(cell.runs, cell.baselines, strict=True)]))),
        "us_per_eviction": _named(interval(np.array([run.us_per_eviction or math.nan for run in cell.runs]))),
        "gap_closed": _named(interval(np.array([math.nan if gap is None else gap for gap in gaps]))),
        "replay_s": float(np.mean([run.elapsed_s for run in cell.runs])),
        "by_seed": {
            "hit_tokens_second_half": [run.second_half.hit_tokens for run in cell.runs],
            "modelled_ttft_s": [run.second_half.modelled_ttft_s for run in cell.runs],
        },
        "regretted_share": float(np.mean([run.evictions.regret.mean() if len(run.evictions.regret) else 0.0 for run in cell.runs])),
    }


def print_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Prints one line a policy and capacity."""
    print_table(
        (
            "workload",
            "capacity",
            "predictor",
            "policy",
            "hit tokens",
            "hit blocks",
            "2nd half",
            "TTFT s",
            "TTFT/LRU",
            "us/eviction",
            "gap closed",
        ),
        [
            (
                r["workload"],
                f"{r['capacity']:g}",
                r["predictor"],
                r["policy"],
                *(_shown(r[name]) for name in ("hit_tokens", "hit_blocks", "hit_tokens_second_half", "modelled_ttft_s", "ttft_to_lru")),
                "-" if r["us_per_eviction"] is None else f"{r['us_per_eviction']['mean']:.1f}",
                "-" if r["gap_closed"] is None else f"{100 * r['gap_closed']['mean']:.0f} %",
            )
            for r in rows
        ],
    )


def _cells(
    labs: Sequence[ReplayLab], predictor: str, capacities: Sequence[float], policies: Sequence[str], told: Steps | None
) -> Iterator[Cell]:
    name = labs[0].workload.name
    for capacity in capacities:
        baselines: list[CacheRun] = []
        for policy in policies:
            if told:
                told.begun(f"{name} at {capacity:g}, predictor {predictor}: {policy}")
            runs = [lab.run(lab_policy(policy), lab.capacity(capacity)) for lab in labs]
            baselines = baselines or runs
            yield Cell(name, capacity, policy, predictor, runs, baselines)


def _rate(runs: Sequence[CacheRun], hits: str, lookups: str, start: float) -> dict[str, float] | None:
    """Returns a hit rate from a share of the requests on, with its interval."""
    parts = []
    for run in runs:
        first = int(start * run.num_requests)
        parts.append((getattr(run.requests, hits)[first:].astype(np.float64), getattr(run.requests, lookups)[first:].astype(np.float64)))
    if len(runs) > 1:
        return _named(interval(np.array([hit.sum() / max(looked.sum(), 1.0) for hit, looked in parts])))
    # Requests that follow one another are alike, so whole stretches are drawn.
    sums = [np.array([part.sum() for part in np.array_split(values, min(NUM_STRETCHES, len(values)))]) for values in parts[0]]
    return _named(resampled(lambda picks, axis: sums[0][picks].sum(axis) / np.maximum(sums[1][picks].sum(axis), 1.0), len(sums[0])))


def _ttft_ratio(run: CacheRun, lru: CacheRun) -> float:
    return run.second_half.modelled_ttft_s / lru.second_half.modelled_ttft_s if lru.second_half.modelled_ttft_s else math.nan


def _named(value: Interval | None) -> dict[str, float] | None:
    return None if value is None else value.named()


def _shown(value: Mapping[str, float] | None) -> str:
    return "-" if value is None else f"{value['mean']:.4f} [{value['lo']:.4f}, {value['hi']:.4f}]"


def _cost(text: str) -> PrefillCost:
    """Returns the prefill cost of a name: `published`, or `model`, timed now where it never was. Raises BadRequest, ModelUnavailable."""
    if text == "published":
        return PUBLISHED_8B
    if text != "model":
        raise BadRequest(f"--cost is {text!r}; give published, or model for the prefill of FUSESCOPE_MODEL on this machine.")
    from engine.prefill_costs import running_cost
    from engine.runtime import load_runtime

    settings = Settings.from_env()
    return running_cost(load_runtime(settings.model, settings))


def _arrivals(text: str) -> Arrivals | None:
    """Returns arrivals of generated sessions: `poisson`, `fixed:SECONDS` or the path of an Azure log. Raises BadRequest."""
    if text == "poisson":
        return None
    if text.startswith("fixed:"):
        try:
            return fixed(float(text.removeprefix("fixed:")))
        except ValueError:
            raise BadRequest(f"--arrivals is {text!r}; give fixed: and a number of seconds, as fixed:0.05.") from None
    if Path(text).is_file():
        return recorded(azure_arrivals(Path(text)))
    raise BadRequest(f"--arrivals is {text!r}; give poisson, fixed:SECONDS or the path of an Azure log.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.bench evict", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--workload",
        default="mix",
        help=f"comma-separated: {', '.join(workload_names())}, or paths of logs (Mooncake, Bailian, Weka, chats)",
    )
    parser.add_argument(
        "--policies", default=f"{BASELINE},saecache,sae_g,{LIMIT}", help=f"comma-separated, or all: {', '.join(lab_names())}"
    )
    parser.add_argument("--capacity", default="0.01,0.02,0.05,0.1", help="shares of the distinct blocks, or numbers of blocks")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds; they set generated sessions, drawn starts and the predictor")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--predictor",
        default="0.77",
        help=f"of whether a session goes on, comma-separated: none, {RULE} (logistic, shipped), oracle, or an oracle with this accuracy",
    )
    parser.add_argument("--cost", default="published", help="of a prefill, for modelled times: published, or model (timed on this machine)")
    parser.add_argument("--ablations", action="store_true", help="replay the policies without their parts as well")
    parser.add_argument("--arrivals", default="poisson", help="of generated sessions: poisson, fixed:SECONDS, or the path of an Azure log")
    parser.add_argument("--scaling", action="store_true", help="measure the cost of an eviction from 1,000 to 100,000 blocks as well")
    parser.add_argument("--runs", type=Path, help="folder for a file of every run (first seed), which the page can show")
    parser.add_argument("--out", type=Path, help="file for the JSON, indented")
    parser.add_argument("--quiet", action="store_true", help="say nothing while it runs")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser
