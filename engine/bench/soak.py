"""Many clients at once on the running app: chats, uploads, cancelled streams and replays, each answer compared with the one given alone.

LIVE, over loopback. Memory is the server's resident memory after each request; its slope is fitted behind a warm-up. Waits are what the
server says about the queue before the engine.
"""

import argparse
import shlex
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from engine.bench.report import print_json, print_table, write_json
from engine.bench.soak_server import Served, served_app
from engine.bench.soak_work import KINDS, Done, Work, chats, new_session, perform, plan, replay_work
from engine.errors import BadRequest, EngineError

FORMAT, MAX_CLIENTS, WARM_UP_SHARE, TIMEOUT_S, NUM_EXAMPLES = "fusescope-soak/1", 64, 1 / 3, 300.0, 5
NUM_SAMPLES = 21


def main(argv: list[str]) -> None:
    """Runs the benchmark. Raises EngineError."""
    args = _parser().parse_args(argv)
    if not 1 <= args.clients <= MAX_CLIENTS or args.requests < args.clients:
        raise BadRequest(
            f"--clients is {args.clients} and --requests {args.requests}; give 1 to {MAX_CLIENTS} clients, a request each at least."
        )
    with served_app(args.url) as server:
        result = soak(server, args.requests, args.clients, args.seed, quiet=args.json or args.quiet)
    result |= {"command": shlex.join(["python", "-m", "engine.bench", "soak", *argv])}
    if not args.json:
        _print(result["rows"])
    if args.out:
        write_json(result, args.out)
    print_json(result)


def soak(server: Served, num_requests: int, num_clients: int, seed: int, quiet: bool = True) -> dict[str, Any]:
    """Returns what came of many requests at once, of JSON's types. Raises EngineError where a request fails even alone."""
    known = chats(seed)
    alone = _alone(server, [*known, replay_work()], seed)
    work = plan(seed, num_requests, known)
    finished: list[Done] = []
    memory: list[float] = []
    lock = threading.Lock()

    def client(number: int) -> None:
        with _client(server.url, seed, number) as connection:
            for item in work[number::num_clients]:
                done = perform(item, connection)
                resident = server.resident_mb()
                with lock:
                    finished.append(done)
                    memory.extend([] if resident is None else [resident])
                    if not quiet and len(finished) % 50 == 0:
                        print(f"{len(finished)} of {num_requests} requests", file=sys.stderr)

    with ThreadPoolExecutor(num_clients) as clients:
        for future in [clients.submit(client, number) for number in range(num_clients)]:
            future.result()
    return report(finished, alone, memory) | {"clients": num_clients, "seed": seed}


def report(finished: Sequence[Done], alone: dict[str, object], memory: Sequence[float]) -> dict[str, Any]:
    """Returns the results of finished requests, of JSON's types.

    Args:
        alone: answers by name of the work; memory: MB, after each request, empty where it is not known.
    """
    wrong = [done for done in finished if done.answer is not None and done.answer != alone[done.work.name]]
    errors = [done.error for done in finished if done.error]
    waits = [done.wait_s for done in finished if done.wait_s is not None]
    warm = memory[int(len(memory) * WARM_UP_SHARE) :]
    return {
        "bench": "soak",
        "format": FORMAT,
        "mode": "live",
        "requests": len(finished),
        "errors": len(errors),
        "mismatches": len(wrong),
        "quota_answers": sum(done.is_quota for done in finished),
        "compared": sum(done.answer is not None for done in finished),
        "rss_slope_mb_per_100": slope_per_100(warm),
        "rss_mb": _sampled(memory),
        "p95_wait_s": _percentile(waits, 95),
        "rows": [_row(kind, finished) for kind in KINDS],
        "examples": [*errors[:NUM_EXAMPLES], *(f"{done.work.name}: {done.answer!r}"[:200] for done in wrong[:NUM_EXAMPLES])],
        "checks": {"no_error": not errors, "every_answer_as_alone": not wrong},
        "provenance": next((done.provenance for done in finished if done.provenance), None),
    }


def slope_per_100(memory: Sequence[float]) -> float | None:
    """Returns by how much a series grows over a hundred of its values, by least squares; None for fewer than three."""
    if len(memory) < 3:
        return None
    return float(100 * np.polynomial.Polynomial.fit(np.arange(len(memory)), np.asarray(memory), 1).convert().coef[1])


def _sampled(memory: Sequence[float]) -> list[float]:
    """Returns at most NUM_SAMPLES values of a series, evenly taken, first and last among them."""
    at = np.unique(np.linspace(0, max(len(memory) - 1, 0), NUM_SAMPLES).round().astype(int))
    return [memory[i] for i in at] if memory else []


def _alone(server: Served, work: Sequence[Work], seed: int) -> dict[str, object]:
    """Returns the answer to each request, asked one after the other with nobody else there."""
    with _client(server.url, seed, MAX_CLIENTS) as connection:
        answers = [perform(item, connection) for item in work]
    for done in answers:
        if done.error or done.is_quota:
            raise EngineError(f"The request {done.work.name!r} was not answered when it was alone ({done.error or 'a quota'}).")
    return {done.work.name: done.answer for done in answers}


def _client(url: str, seed: int, number: int) -> httpx.Client:
    return httpx.Client(base_url=url, headers=new_session(seed, number), timeout=TIMEOUT_S, trust_env=False)


def _row(kind: str, finished: Sequence[Done]) -> dict[str, Any]:
    of_kind = [done for done in finished if done.work.kind == kind]
    times = [done.elapsed_s for done in of_kind if not done.error and not done.is_quota]
    return {
        "kind": kind,
        "n": len(of_kind),
        "errors": sum(done.error is not None for done in of_kind),
        "quota_answers": sum(done.is_quota for done in of_kind),
        "p50_s": _percentile(times, 50),
        "p95_s": _percentile(times, 95),
        "p95_wait_s": _percentile([done.wait_s for done in of_kind if done.wait_s is not None], 95),
    }


def _percentile(values: Sequence[float], share: float) -> float | None:
    return float(np.percentile(values, share)) if values else None


def _print(rows: Sequence[dict[str, Any]]) -> None:
    shown = [[str(row[name]) if isinstance(row[name], int | str) else _seconds(row[name]) for name in row] for row in rows]
    print_table(tuple(rows[0]), shown)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.bench soak", description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=500, help="of all clients together")
    parser.add_argument("--clients", type=int, default=8, help=f"at once, 1 to {MAX_CLIENTS}")
    parser.add_argument("--seed", type=int, default=0, help="draws what is sent")
    parser.add_argument("--url", help="of a running app; without it one is started on a free port, by the settings of the environment")
    parser.add_argument("--out", type=Path, help="file for the JSON, indented")
    parser.add_argument("--quiet", action="store_true", help="say nothing while it runs")
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    return parser
