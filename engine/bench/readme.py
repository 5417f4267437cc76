"""Writes README's measured table from the recorded results, so that no number in it is typed in by hand."""

import argparse
import json
from pathlib import Path

from engine.bench.report import print_json
from engine.errors import BadRequest
from engine.results import ResultSet, Row
from engine.resultsfile import RESULTS_DIR, load_results

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"
# What the first screen shows: the reference, the extremes, the papers' rule, its main rivals and ours.
SHOWN = ("full", "reuse", "epic", "cacheblend", "qcall", "qcfuse", "qcfuse+primed-mean", "qcfuse_learned+primed-mean")
RATIOS = (0.1, 0.2, 0.3)
HEAD = ("method", "ratio", "TTFT (median)", "speed-up [95 %]", "KL to full prefill [95 %]", "gold NLL", "answers holding the gold")


def main(argv: list[str]) -> None:
    """Rewrites the table, or with --check says whether it is up to date. Raises BadRequest."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench readme", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS_DIR / "scenarios.json")
    parser.add_argument("--prefill", type=Path, default=RESULTS_DIR / "prefill.json")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the table is not that of the results")
    args = parser.parse_args(argv)
    table = measured(load_results(args.results), json.loads(args.prefill.read_text(encoding="utf-8")))
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    text = f"{before}{BEGIN}\n{table}{END}{rest.split(END)[1]}"
    is_current = text == README.read_text(encoding="utf-8")
    if args.check and not is_current:
        raise BadRequest("README's table is not that of the recorded results; run python -m engine.bench readme.")
    if not is_current:
        README.write_text(text, encoding="utf-8")
    print_json({"bench": "readme", "rows": [{"file": str(args.results), "changed": not is_current}]})


def measured(results: ResultSet, prefill: dict[str, object]) -> str:
    """Returns the table and the sentence on where its numbers come from."""
    rows = [row for name in SHOWN for row in results.rows if row.method == name and (row.ratio is None or row.ratio in RATIOS)]
    head = (
        "method",
        "ratio",
        "TTFT (median)",
        "speed-up over full [95 %]",
        "KL to full prefill [95 %]",
        "gold NLL",
        "answers holding the gold",
    )
    lines = [_line(head), _line(["---"] * len(head)), *(_line(_cells(row)) for row in rows)]
    full = next(row for row in results.rows if row.method == "full")
    p = results.provenance
    times = "; ".join(f"{r['tokens']:,} tokens {_s(r['ours_s']['median'])} / {_s(r['transformers_s']['median'])}" for r in prefill["rows"])
    said = (
        f"\nMeasured {p.created[:10]} with {p.model} ({p.weights}) on {p.device}, {p.num_threads} threads: `{results.command}`"
        f"\n({full.n} questions, {full.N:,} document tokens, {results.repeats} round{'s' if results.repeats > 1 else ''} each; "
        f"stored KV read through the page cache). Full prefill here against transformers'\nown forward pass, another run: {times}.\n"
    )
    return "\n".join(lines) + "\n" + said


def _cells(row: Row) -> list[str]:
    kl, answered = row.kl_to_full, row.answered
    return [
        f"`{row.method}`",
        "–" if row.ratio is None else f"{row.ratio:g}",
        _s(row.ttft_s.median),
        f"{row.speedup.median:.2f} [{row.speedup.lo:.2f}, {row.speedup.hi:.2f}]",
        "–" if kl is None else f"{kl.mean:.3f} [{kl.lo:.3f}, {kl.hi:.3f}]",
        "–" if row.gold_nll is None else f"{row.gold_nll:.2f}",
        "–" if answered is None else f"{round(answered * row.n)} of {row.n}",
    ]


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s"
