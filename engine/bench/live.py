"""The same scripted sessions through the real model behind two prefix caches, in turn: measured time to first token under each policy.

LIVE: times run from the look-up of a prompt to its first token, nobody else being served; policies see the script's clock. Intervals are
over requests, paired: every request is served by each policy, the first one changing from request to request. Where two policies find
as many tokens they do the same work, and their times differ by noise alone; `from_hits` counts such requests as equal.
"""

import argparse
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from engine.bench.accuracy import parse_accuracy
from engine.bench.intervals import Interval, interval, ratio_of_means
from engine.bench.replay import parse_policies
from engine.bench.report import print_json, print_table, write_json
from engine.cache_types import CacheRun
from engine.errors import BadRequest
from engine.model.decoder import Decoder
from engine.model.tiny import tiny_model
from engine.prefix.blocks import capacity_in_blocks
from engine.prefix.cachefile import save_cache_run
from engine.prefix.lab import run_name
from engine.prefix.live import LiveRun, LiveStep
from engine.prefix.live_soak import growth_bytes, resident_bytes, soak
from engine.prefix.live_traffic import LiveTraffic, live_traffic
from engine.prefix.policies import POLICIES
from engine.prefix.predictor import SessionPredictor, find_better, find_predictor
from engine.prefix.predictor_rule import load_rule
from engine.prefix.replay import replay
from engine.prefix.roles import ChatFormat
from engine.prefix.serve import PrefixServer
from engine.provenance import provenance
from engine.runtime import Runtime, load_runtime
from engine.settings import Settings
from kernels.ops import load_ops

FORMAT, LEARNED, RULE, AUTO, MIB = "fusescope-live/1", "learned", "rule", "auto", 2**20
LEAST_S = 1e-6
SOAK_CAPACITY, SOAK_ROWS, MOST_GROWTH_BYTES = 12, 64, 2 * MIB


@dataclass(eq=False)
class Measured:
    """What was seen of one seed: a run for each policy, and memory while they ran."""

    runs: tuple[CacheRun, ...]
    same_as_replay: bool
    pool_bytes: list[int]
    within_bytes: bool = True
    follow_up: list[list[float]] = field(default_factory=list)
    load_s: float = 0.0
    load_bytes: int = 0
    resident: list[int] = field(default_factory=list)


class Soaked(NamedTuple):
    """Many requests through a model so small that nothing but the cache's own memory would show."""

    model: str
    requests: int
    evictions: int
    growth_bytes: int


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError."""
    args = _parser().parse_args(argv)
    names = parse_policies(args.policies)
    named = args.predictor in (AUTO, LEARNED, RULE)
    accuracy = None if named else parse_accuracy(args.predictor, f"none, {LEARNED}, {RULE}, {AUTO}, oracle")
    if args.seeds < 1 or args.soak < 0:
        raise BadRequest(f"--seeds is {args.seeds} and --soak {args.soak}; give at least one seed and no negative number of requests.")
    if not (math.isfinite(args.gap) and args.gap > 0):
        raise BadRequest(f"--gap is {args.gap}; give the mean seconds between starts of sessions, more than 0.")
    if args.runs:
        args.runs.mkdir(parents=True, exist_ok=True)
    settings = Settings.from_env()
    runtime = load_runtime(settings.model, settings)
    chat = ChatFormat(runtime.model.tokenizer, lambda text, special: runtime.prompts.tokenize(text, special).ids)
    measured, learned = [], _learned(runtime, args.predictor)
    rule = load_rule() if args.predictor == RULE or (args.predictor == AUTO and learned is None) else None
    predictor = next((one.described for one in (learned, rule) if one is not None), args.predictor)
    for seed in range(args.seed, args.seed + args.seeds):
        told = live_traffic(chat, args.requests, seed, args.gap, runtime.model.spec.max_context)
        traffic = told.predicted(accuracy, seed) if rule is None else told.predicted_by(rule)
        capacity = capacity_in_blocks(args.capacity, traffic.workload.num_blocks)
        measured.append(measure(runtime, traffic, names, capacity, seed, predictor, learned, args.repeats, args.quiet or args.json))
        for run in measured[-1].runs if args.runs else ():
            save_cache_run(run, args.runs / run_name(run))
    result = report(measured, names, soaked(args.soak)) | {
        "requests": args.requests,
        "seeds": args.seeds,
        "repeats": args.repeats,
        "predictor": measured[0].runs[0].predictor,
        "notes": measured[0].runs[0].notes,
        "command": shlex.join(["python", "-m", "engine.bench", "live", *argv]),
        "provenance": msgspec.to_builtins(provenance(runtime)),
    }
    if not args.json:
        _print(result["rows"])
    if args.out:
        write_json(result, args.out)
    print_json(result)


def measure(
    runtime: Runtime,
    traffic: LiveTraffic,
    names: Sequence[str],
    capacity: int,
    seed: int,
    predictor: str,
    learned: SessionPredictor | None = None,
    repeats: int = 1,
    quiet: bool = True,
) -> Measured:
    """Returns the runs of the named policies over one traffic, a cache of `capacity` blocks each. Raises BadRequest."""
    predict = None if learned is None else learned.probability
    live = LiveRun(runtime.decoder, traffic, [POLICIES.create(name) for name in names], capacity, predict, repeats)
    seen = Measured((), True, live.pool_bytes, follow_up=[[] for _ in names])

    def watch(step: LiveStep) -> None:
        server = live.servers[step.position]
        seen.follow_up[step.position].append(step.served.follow_up)
        used = (server.pages.num_pages - server.pages.num_free) * server.pool.page_bytes
        seen.within_bytes &= used <= server.pool.size_bytes == seen.pool_bytes[step.position]
        for span in step.served.first.spans:
            if span.stage == "load" and span.size_bytes:
                seen.load_s += span.end_s - span.start_s
                seen.load_bytes += span.size_bytes
        seen.resident.append(resident_bytes())
        if not quiet and step.position == 0 and step.index % 20 == 0:
            print(f"seed {seed}: request {step.index + 1} of {len(traffic.requests)}", file=sys.stderr)

    spec = runtime.model.spec
    place = f"{spec.name} in {spec.dtype} on {runtime.model.device.type}, {runtime.num_threads} threads"
    seen.runs = live.run(seed, predictor, place, watch)
    for run, follow_up in zip(seen.runs, seen.follow_up, strict=True):
        told = replace(traffic.workload, follow_up=np.array(follow_up, np.float32))
        simulated = replay(told, POLICIES.create(run.policy), capacity)
        seen.same_as_replay &= np.array_equal(simulated.num_hits, run.requests.hit_blocks)
        seen.same_as_replay &= np.array_equal(simulated.evicted, run.evictions.block)
    return seen


def report(measured: Sequence[Measured], names: Sequence[str], memory: Soaked | None) -> dict[str, Any]:
    """Returns the results of all seeds together, of JSON's types."""
    ttft = [np.concatenate([seen.runs[i].requests.ttft_s for seen in measured]).astype(np.float64) for i in range(len(names))]
    found = [np.concatenate([seen.runs[i].requests.hit_tokens for seen in measured]) for i in range(len(names))]
    ratios = {name: ratio_of_means(ttft[i], ttft[0], LEAST_S) for i, name in enumerate(names)}
    rows = []
    for i, name in enumerate(names):
        runs = [seen.runs[i] for seen in measured]
        rows.append(
            {
                "policy": name,
                "n": len(ttft[i]),
                "ttft_s": _named(interval(ttft[i])),
                "ttft_minus_lru_s": _named(interval(ttft[i] - ttft[0])),
                "ttft_to_lru": _named(ratios[name]),
                "num_hits_differ": int((found[i] != found[0]).sum()),
                "from_hits": _named(ratio_of_means(np.where(found[i] != found[0], ttft[i], ttft[0]), ttft[0], LEAST_S)),
                "hit_tokens": _share(runs, "hit_tokens", "prompt_tokens"),
                "hit_blocks": _share(runs, "hit_blocks", "prompt_blocks"),
                "hit_tokens_by_seed": [run.score().hit_tokens for run in runs],
                "limit_hit_blocks": float(sum(_limit(run) for run in runs) / sum(int(run.requests.prompt_blocks.sum()) for run in runs)),
                "evictions": sum(len(run.evictions.block) for run in runs),
                "us_per_eviction": _per_eviction(runs),
            }
        )
    judged, hits = ratios.get("saecache"), {row["policy"]: row["hit_tokens"] for row in rows}
    load_s = sum(seen.load_s for seen in measured)
    return {
        "bench": "live",
        "format": FORMAT,
        "mode": "live",
        "rows": rows,
        "num_blocks": [seen.runs[0].num_blocks for seen in measured],
        "capacity_blocks": [seen.runs[0].capacity_blocks for seen in measured],
        "pool_bytes": [seen.pool_bytes[0] for seen in measured],
        "resident_growth_bytes": [seen.resident[-1] - seen.resident[len(seen.resident) // 2] for seen in measured],
        "gather": {
            "share_of_ttft": load_s / sum(float(times.sum()) for times in ttft),
            "gb_per_s": sum(seen.load_bytes for seen in measured) / load_s / 1e9 if load_s else None,
        },
        "checks": {
            "saecache_ttft_at_most_lru": None if judged is None else judged.value <= 1.0,
            "saecache_ttft_below_lru_beyond_its_interval": None if judged is None else judged.hi < 1.0,
            "saecache_finds_at_least_as_much_as_lru": None if judged is None else hits["saecache"] >= hits[names[0]],
            "pool_within_bytes": all(seen.within_bytes for seen in measured),
            "hits_and_evictions_as_replayed": all(seen.same_as_replay for seen in measured),
            "memory_flat": None if memory is None else memory.growth_bytes < MOST_GROWTH_BYTES,
        },
        "memory": None if memory is None else memory._asdict(),
    }


def soaked(num_requests: int) -> Soaked | None:
    """Returns what so many requests do to the process's memory; None for 0."""
    if not num_requests:
        return None
    model = tiny_model()
    server = PrefixServer(Decoder(model, load_ops("torch")), POLICIES.create("saecache"), SOAK_CAPACITY, num_rows=SOAK_ROWS)
    resident = soak(server, num_requests, seed=0)
    server.check_integrity()
    return Soaked(model.spec.name, num_requests, server.tree.num_evicted, growth_bytes(resident))


def _share(runs: Sequence[CacheRun], hits: str, lookups: str) -> float:
    return float(
        sum(int(getattr(run.requests, hits).sum()) for run in runs) / sum(int(getattr(run.requests, lookups).sum()) for run in runs)
    )


def _limit(run: CacheRun) -> int:
    assert run.limit_hit_blocks is not None, "a live run is judged with the limit"
    return int(run.limit_hit_blocks.sum())


def _per_eviction(runs: Sequence[CacheRun]) -> float | None:
    num = sum(len(run.evictions.block) for run in runs)
    return 1e6 * sum(run.elapsed_s for run in runs) / num if num else None


def _named(value: Interval | None) -> dict[str, float] | None:
    return None if value is None else value.named()


def _learned(runtime: Runtime, wanted: str) -> SessionPredictor | None:
    """Returns the model's own predictor where it is wanted, None where it is not or where `auto` finds none that beats the rule. Raises
    BadRequest where it is wanted by name and missing."""
    if wanted not in (LEARNED, AUTO):
        return None
    find = find_predictor if wanted == LEARNED else find_better
    found = find(runtime.model.spec, runtime.model.device, runtime.settings.cache_dir)
    if found is None and wanted == LEARNED:
        raise BadRequest(
            f"There is no session predictor for {runtime.model.spec.name}; train one with python -m engine.prefix.train_predictor."
        )
    return found


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    print_table(
        ("policy", "TTFT s", "TTFT/LRU", "from hits", "hit tokens", "hit blocks", "evictions"),
        [
            (
                r["policy"],
                *(f"{r[k]['mean']:.4f} [{r[k]['lo']:.4f}, {r[k]['hi']:.4f}]" for k in ("ttft_s", "ttft_to_lru", "from_hits")),
                f"{r['hit_tokens']:.3f}",
                f"{r['hit_blocks']:.3f}",
                r["evictions"],
            )
            for r in rows
        ],
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.bench live", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--policies", default="lru,saecache", help=f"comma-separated, LRU is always among them: {', '.join(POLICIES.names())}"
    )
    parser.add_argument("--requests", type=int, default=120, help="of each seed")
    parser.add_argument("--capacity", type=float, default=0.25, help="a share of the distinct blocks, or a number of blocks")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds; they draw the sessions and the predictor's mistakes")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--repeats", type=int, default=1, help="timed prefills of every request, of which the median counts")
    parser.add_argument("--gap", type=float, default=4.0, help="mean seconds between starts of sessions, on the script's clock")
    parser.add_argument(
        "--predictor",
        default=AUTO,
        help="of whether a session goes on: auto (learned where the model has one that beats the rule, else rule), learned, rule, none, "
        "oracle, or an oracle with this accuracy",
    )
    parser.add_argument("--soak", type=int, default=1_000, help="requests of a tiny model that watch over memory; 0 for none")
    parser.add_argument("--runs", type=Path, help="folder for a file of every run, which the page can show")
    parser.add_argument("--out", type=Path, help="file for the JSON, indented")
    parser.add_argument("--quiet", action="store_true", help="say nothing while it runs")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser
