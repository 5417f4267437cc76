"""`python -m engine.ask --scenario NAME "question"`: one question by several methods, printed with what was recomputed."""

import argparse
import sys
from pathlib import Path

from engine.errors import BadRequest, EngineError
from engine.runfile import save_run
from engine.serving.sglang_lane import PREFIX_CACHE, URL_VARIABLE
from engine.session import Session
from engine.settings import Settings
from engine.types import FusionRequest, MethodRun, Run, Status

ENGINES = ("built-in", "sglang")
USUAL = ("full", "reuse", "qcfuse")


def main(argv: list[str] | None = None) -> int:
    """Answers one question; returns 0, or 2 with one sentence where the call is at fault."""
    parser = argparse.ArgumentParser(prog="python -m engine.ask", description=__doc__.split(": ", 1)[1])
    parser.add_argument("question", help="a question in your words, or the id of a prepared one")
    parser.add_argument("--scenario", required=True)
    parser.add_argument("--ratio", type=float, default=0.3, help="share of document tokens recomputed, 0..1")
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help=f"sglang: the server that {URL_VARIABLE} names")
    parser.add_argument("--methods", help=f"separated by commas; full,reuse,qcfuse without it, and {PREFIX_CACHE} on sglang")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-new-tokens", type=int, default=32)
    parser.add_argument("--save", type=Path, help="write the run to this file (.run.json.gz)")
    args = parser.parse_args(argv)
    try:
        session = Session(Settings.from_env())
        request = session.scenario(args.scenario).request(
            args.question, ratio=args.ratio, repeats=args.repeats, max_new_tokens=args.max_new_tokens
        )
        run = _run(session, args.engine, args.methods, request)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    _print_run(run)
    if args.save:
        save_run(run, args.save)
        print(f"saved {args.save}")
    return 0


def _run(session: Session, engine: str, methods: str | None, request: FusionRequest) -> Run:
    """Returns the run of a request by an engine, by the usual methods where none are named. Raises EngineError."""
    if engine == "sglang" and session.sglang is None:
        raise BadRequest(f"No SGLang server is named; set {URL_VARIABLE} to the address of a running one, or leave --engine out.")
    place = session.sglang if engine == "sglang" and session.sglang else session
    usual = (*USUAL, PREFIX_CACHE) if engine == "sglang" else USUAL
    return place.run(request, tuple(part.strip() for part in methods.split(",")) if methods else usual, _show_status)


def _show_status(status: Status) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{status.message}", end="", file=sys.stderr, flush=True)


def _print_run(run: Run) -> None:
    p = run.provenance
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    badges = " · ".join(filter(None, (p.mode.upper(), p.served_by)))
    print(f"{badges} · {p.model} ({p.weights}) · {p.dtype} · {p.device}, {p.num_threads} threads · {p.created}")
    print(f"{run.num_doc_tokens:,} document tokens in {len(run.chunks)} chunks · {run.question}")
    if run.gold_answers:
        print(f"gold: {' | '.join(run.gold_answers)}")
    full = run.method("full")
    for method in run.methods:
        _print_method(method, full, run)
    for notice in run.notices:
        print(f"note: {notice}")


def _print_method(method: MethodRun, full: MethodRun | None, run: Run) -> None:
    parts = ", ".join(f"{name} {getattr(method.parts_s, name):.3f}" for name in method.parts_s.__dataclass_fields__)
    gain = f", {full.ttft_s / method.ttft_s:.2f} x full prefill's speed" if full and method is not full else ""
    low, high = min(method.ttft_repeats_s), max(method.ttft_repeats_s)
    inside = "" if method.server_ttft_s is None else f", {method.server_ttft_s:.3f} s inside the server"
    spread = f"[{low:.3f}-{high:.3f}, n={len(method.ttft_repeats_s)}]"
    print(f"\n{method.method}: first token after {method.ttft_s:.3f} s {spread}{inside}{gain}")
    print(f"  {parts} s; {len(method.rows):,} of {len(run.tokens):,} rows computed, {method.loaded_bytes / 1e6:.1f} MB of KV loaded")
    print(f"  answer: {method.answer.strip()}")
    q = method.quality
    figures = {"ROUGE-L": q.rouge_l, "F1": q.f1, "gold NLL": q.gold_nll, "KL to full": q.kl_to_full, "span recall": q.span_recall}
    print("  " + ", ".join(f"{name} {value:.3f}" for name, value in figures.items() if value is not None))
    if method.ranking is not None:
        print(f"  recomputed, best first: {_chosen_text(method, run)}")


def _chosen_text(method: MethodRun, run: Run, most: int = 24) -> str:
    chosen = set(method.rows.tolist())
    best = [int(position) for position in method.ranking if int(position) in chosen][:most]
    return " ".join(repr(run.tokens[position]) for position in best) + (" …" if best else "none")


if __name__ == "__main__":
    sys.exit(main())
