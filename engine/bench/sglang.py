"""Times to first token of the built-in engine and of a running SGLang server, on the same token ids, in one run: A B A B.

The server's times are its client's, HTTP, scheduling and sampling among them; what it takes by its own clock stands beside them. Both
should be on the same machine, and nothing else on it.
"""

import argparse
import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from engine.bench.report import print_json, print_table, spread
from engine.compare import compare
from engine.errors import BadRequest
from engine.runtime import load_runtime
from engine.scenarios import find_scenario
from engine.serving.sglang_client import BADGE, client_of
from engine.serving.sglang_lane import PREFIX_CACHE, URL_VARIABLE
from engine.serving.sglang_server import SGLangServer
from engine.settings import Settings
from engine.types import FusionRequest, MethodRun, Run

BUILT_IN = "built-in"
HEADER = ("engine", "method", "ratio", "rows", "TTFT ms [least, most]", "over its full", "inside ms", "rows, answer as built-in")
Place = Callable[[FusionRequest, tuple[str, ...]], Run]


class Pair(NamedTuple):
    """One round of one request in both places."""

    here: Run
    there: Run


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench sglang", description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", default="harbour-museum")
    parser.add_argument("--ratios", default="0.1,0.2,0.4", help="recompute ratios, comma-separated")
    parser.add_argument("--methods", default="full,reuse,qcfuse", help=f"comma-separated, with full; on {BADGE} {PREFIX_CACHE} is added")
    parser.add_argument("--repeats", type=int, default=5, help="rounds that are counted; one before them is not")
    parser.add_argument("--max-new-tokens", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    args = parser.parse_args(argv)
    settings, methods = Settings.from_env(), tuple(part.strip() for part in args.methods.split(","))
    if not settings.sglang_url:
        raise BadRequest(f"No SGLang server is named; set {URL_VARIABLE} to the address of a running one.")
    if "full" not in methods or args.repeats < 1:
        raise BadRequest(f"--methods is {args.methods!r}, --repeats {args.repeats}; full must be among them, and repeats 1 at least.")
    runtime, ratios = load_runtime(settings.model, settings), _ratios(args.ratios)
    scenario = find_scenario(args.scenario)
    question = scenario.questions[0].id
    requests = [scenario.request(question, ratio=ratio, repeats=1, max_new_tokens=args.max_new_tokens) for ratio in ratios]
    with contextlib.closing(SGLangServer(settings.sglang_url)) as server:
        there = client_of(server, runtime.model).run
        pairs = [_rounds(functools.partial(compare, runtime), there, request, methods, args.repeats) for request in requests]
    rows = [row for found in pairs for row in summary(found)]
    if not args.json:
        print_table(HEADER, [_line(row) for row in rows])
    last = pairs[-1][-1]
    told: dict[str, Any] = {"bench": "sglang", "scenario": args.scenario, "num_tokens": len(last.here.tokens), "repeats": args.repeats}
    sources = {BUILT_IN: msgspec.to_builtins(last.here.provenance), BADGE: msgspec.to_builtins(last.there.provenance)}
    print_json(told | {"rows": rows, "provenance": sources})


def _ratios(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadRequest(f"--ratios is {text!r}; give numbers from 0 to 1 separated by commas.") from None


def _rounds(here: Place, there: Place, request: FusionRequest, methods: tuple[str, ...], repeats: int) -> list[Pair]:
    """Returns the rounds that count, the places in turn within each."""
    pairs = []
    for i in range(repeats + 1):
        print(f"\rratio {request.ratio:g}: round {i} of {repeats}", end="", file=sys.stderr, flush=True)
        pairs.append(Pair(here(request, methods), there(request, (*methods, PREFIX_CACHE))))
    print(file=sys.stderr)
    for notice in pairs[-1].there.notices:
        print(notice, file=sys.stderr)
    return pairs[1:]


def summary(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Returns one row a method and place: medians, spread, the rounds' ratios to the same place's full prefill, and whether the server
    recomputed the same rows and wrote the same answer as the built-in engine."""
    here, there = [pair.here for pair in pairs], [pair.there for pair in pairs]
    own = [_row(here, method, BUILT_IN, None) for method in here[-1].methods]
    return own + [_row(there, method, BADGE, here[-1].method(method.method)) for method in there[-1].methods]


def _row(runs: Sequence[Run], method: MethodRun, place: str, like: MethodRun | None) -> dict[str, Any]:
    own = [_of(run, method.method) for run in runs]
    inside = [one.server_ttft_s for one in own if one.server_ttft_s is not None]
    return {
        "engine": place,
        "method": method.method,
        "ratio": runs[-1].ratio,
        "num_rows": len(method.rows),
        "ttft_s": spread([one.ttft_s for one in own]),
        "speedup_over_full": spread([_of(run, "full").ttft_s / one.ttft_s for run, one in zip(runs, own, strict=True)]),
        "inside_s": spread(inside) if inside else None,
        "same_rows": None if like is None else bool(np.array_equal(like.rows, method.rows)),
        "same_answer": None if like is None else bool(np.array_equal(like.answer_ids, method.answer_ids)),
    }


def _of(run: Run, name: str) -> MethodRun:
    found = run.method(name)
    assert found is not None, "every round runs the same methods"
    return found


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    ttft, gain = row["ttft_s"], row["speedup_over_full"]
    same = "–" if row["same_rows"] is None else f"{'yes' if row['same_rows'] else 'no'}, {'yes' if row['same_answer'] else 'no'}"
    return (
        row["engine"],
        row["method"],
        f"{row['ratio']:g}",
        f"{row['num_rows']:,}",
        f"{1e3 * ttft['median']:,.0f} [{1e3 * ttft['min']:,.0f}, {1e3 * ttft['max']:,.0f}]",
        f"{gain['median']:.2f} [{gain['min']:.2f}, {gain['max']:.2f}]",
        "–" if row["inside_s"] is None else f"{1e3 * row['inside_s']['median']:,.0f}",
        same,
    )
