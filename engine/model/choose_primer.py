"""`python -m engine.model.choose_primer`: measures the primers that chunk caches can be computed behind, and names the best.

Each candidate of assets/primers is judged by mean KL to full prefill of QCFuse at one ratio, over chunks of the context "primed", on
the same samples as all others; direct reuse, the context "primed-one" and the mean over all candidates are shown beside it. An entry
point: it composes the engine as app.py does, and nothing imports it.
"""

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.bench.report import print_json, print_table
from engine.errors import BadRequest, EngineError, UnknownName
from engine.model.bundled import MODEL_NAME
from engine.model.primer import PRIMER_DIR, Primer, PrimerChoice, primers
from engine.runtime import load_runtime
from engine.settings import Settings
from engine.tuning.data import TuningSet, add_arguments, load_sets
from engine.tuning.pooled import Paired, paired
from engine.tuning.primer_trial import Cell, Trial, run_trial

JUDGED = "primed"


def main(argv: list[str] | None = None, folder: Path = PRIMER_DIR) -> int:
    """Measures the candidates and names the best; returns 0, or 2 with one sentence where the call is at fault.

    Args:
        folder: where the choice is filed.
    """
    parser = argparse.ArgumentParser(prog="python -m engine.model.choose_primer", description="Choose the text chunks are primed with.")
    add_arguments(parser, num=12)
    parser.add_argument("--ratio", type=float, default=0.10, help="recompute ratio of QCFuse")
    parser.add_argument("--primers", help="comma-separated candidates; all otherwise")
    parser.add_argument("--write", action="store_true", help="file the choice in assets/primers/choice.json")
    args = parser.parse_args(argv)
    try:
        if not 0 < args.ratio < 1:
            raise BadRequest(f"--ratio is {args.ratio:g}; it must be above 0 and below 1.")
        candidates = _candidates(args.primers)
        settings = Settings.from_env()
        runtime = load_runtime(args.model or settings.model, settings)
        sets = load_sets(args, lambda chunk: len(runtime.prompts.chunk(chunk)))
        trial = run_trial(runtime, sets, candidates, args.ratio)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    method = f"qcfuse@{args.ratio:g}"
    best = min(candidates, key=lambda primer: trial.mean_of(Cell(method, JUDGED, primer.name)))
    note = _note(trial, sets, method, best, runtime.model.spec.name)
    if args.write:
        write_choice(folder / "choice.json", runtime.model.spec.name, best.name, note)
    lengths = {primer.name: len(runtime.prompts.tokenize(primer.text)) for primer in candidates}
    _print(trial, lengths, best)
    print(f"chosen: {best.name}. {note}" + (f" Filed as {folder / 'choice.json'}." if args.write else ""))
    print_json({"choose_primer": runtime.model.spec.name, "chosen": best.name, "note": note, "rows": _json_rows(trial)})
    return 0


def write_choice(path: Path, model: str, chosen: str, note: str) -> None:
    """Files a choice: the general one for the bundled model, that model's own for any other, whose note is added to the file's."""
    before = msgspec.json.decode(path.read_bytes(), type=PrimerChoice)
    if model == MODEL_NAME:
        made = PrimerChoice(chosen, note, before.by_model)
    else:
        made = PrimerChoice(before.chosen, f"{before.note} {model}: {note}", {**before.by_model, model: chosen})
    path.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


def _candidates(names: str | None) -> tuple[Primer, ...]:
    known = {primer.name: primer for primer in primers()}
    wanted = names.split(",") if names else list(known)
    for name in wanted:
        if name not in known:
            raise UnknownName(f"Unknown primer {name!r}; known ones are: {', '.join(known)}.")
    return tuple(known[name] for name in wanted)


def _note(trial: Trial, sets: Sequence[TuningSet], method: str, best: Primer, model: str) -> str:
    """Returns the choice's evidence in one sentence or two."""
    base, cell = Cell(method, "system", ""), Cell(method, JUDGED, best.name)
    gain = paired(trial.differences(cell, base))
    others = {c.primer: trial.mean_of(c) for c in trial.divergences if (c.method, c.context) == (method, JUDGED) and c != cell}
    rest = ", ".join(f"{name} {mean:.4f}" for name, mean in sorted(others.items(), key=lambda item: item[1]))
    return (
        f"Mean KL to full prefill of {method} on {model}, {', '.join(tuning.label for tuning in sets)}, each set of equal weight: "
        f"{trial.mean_of(cell):.4f} primed with it, {trial.mean_of(base):.4f} behind the system part alone (paired difference "
        f"{_words(gain)})" + (f"; other candidates: {rest}" if rest else "") + f". Measured {datetime.date.today().isoformat()}."
    )


def _words(value: Paired) -> str:
    return f"{value.mean:+.4f} [{value.low:+.4f}, {value.high:+.4f}]"


def _print(trial: Trial, lengths: dict[str, int], best: Primer) -> None:
    rows = []
    for cell in sorted(trial.divergences, key=lambda c: (c.method, c.context != "system", c.context, trial.mean_of(c))):
        base, against = Cell(cell.method, "system", ""), Cell(cell.method, JUDGED, best.name)
        rows.append(
            (
                cell.method,
                cell.context,
                cell.primer or "-",
                str(lengths.get(cell.primer, 0)),
                f"{trial.mean_of(cell):.4f}",
                _words(paired(trial.differences(cell, base))) if cell != base else "-",
                _words(paired(trial.differences(cell, against))) if cell != base and cell != against else "-",
            )
        )
    print_table(("method", "context", "primer", "tokens", "KL", "minus system [95 %]", f"minus {JUDGED} {best.name} [95 %]"), rows)


def _json_rows(trial: Trial) -> list[dict[str, object]]:
    return [
        {
            **cell._asdict(),
            "kl": trial.mean_of(cell),
            "minus_system": paired(trial.differences(cell, Cell(cell.method, "system", "")))._asdict(),
            "by_set": [float(values.mean()) for values in arrays],
            "n": [len(values) for values in arrays],
        }
        for cell, arrays in trial.divergences.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
