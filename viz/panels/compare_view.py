"""From benchmark results to what the Compare tab shows. Knows nothing of Gradio."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import plotly.graph_objects as go

from engine.claims.claim import data_name, hardware
from engine.errors import BadRequest, UnknownName
from engine.results import METRICS, ResultSet, metric_of
from engine.resultsfile import UPLOADED
from viz import theme
from viz.figures.break_even import break_even_figure, break_even_info, break_even_words
from viz.figures.pareto import pareto_figure, pareto_info
from viz.figures.published import PublishedInfo, published_figure
from viz.panels.compare_tables import equal_quality_table, measure_words, results_table

NO_RESULTS = "No result set is loaded. Measure one with python -m engine.bench fuse, or open a results file."
PUBLISHED_FILE = Path(__file__).resolve().parents[2] / "datasets" / "published" / "qcfuse_figure3.json"
PAPER_METHODS = ("full", "reuse", "qcfuse", "cacheblend", "epic", "kvshare", "qcall", "qclast", "random")
FIRST_METHODS = ("full", "reuse", "qcfuse", "qcfuse_cv", "cacheblend", "epic", "qcall", "qcfuse_learned+primed")
MAX_FIRST, SCENARIOS = 8, "scenarios"


class CompareView(NamedTuple):
    """Everything that depends on the set, the metric, the methods and the ratio."""

    pareto: go.Figure
    table: dict[str, Any]
    break_even: go.Figure
    break_even_note: str
    equal: dict[str, Any]


def compare_view(results: ResultSet | None, metric: str, methods: list[str], ratio: float | None, log_time: bool) -> CompareView:
    """Returns the pictures and tables, or empty ones that say what to do."""
    if results is None:
        nothing = {"caption": "Every method and ratio", "columns": [], "rows": [], "reason": NO_RESULTS, "note": ""}
        no_pairs = {**nothing, "caption": "Time at equal quality"}
        return CompareView(pareto_figure(None, reason=NO_RESULTS), nothing, break_even_figure(None, NO_RESULTS), "", no_pairs)
    costs = break_even_info(results, methods, ratio)
    why = "No chosen method has this metric; choose another." if methods else "No method is chosen; tick at least one."
    return CompareView(
        pareto=pareto_figure(pareto_info(results, methods, metric), log_time, why),
        table=results_table(results, methods, metric, opens=results.data == SCENARIOS),
        break_even=break_even_figure(costs) if costs is None else break_even_figure(costs, why),
        break_even_note=break_even_words(costs),
        equal=equal_quality_table(results, methods, ratio),
    )


def set_label(results: ResultSet) -> str:
    """Returns how a set is called in the selector."""
    source = results.provenance
    own = "opened file: " if results.name == UPLOADED else ""
    return f"{own}{data_name(results.data)} · {source.model} · {hardware(source)} · n = {results.n} · {source.created[:10]}"


def find_set(sets: tuple[ResultSet, ...], name: str | None) -> ResultSet | None:
    """Returns the set of a name, the first one for None, None where there is none at all. Raises UnknownName."""
    if name is None:
        return sets[0] if sets else None
    found = next((one for one in sets if one.name == name), None)
    if found is None:
        raise UnknownName(f"Unknown result set {name!r}; known ones are: {', '.join(one.name for one in sets) or 'none'}.")
    return found


def metric_choices(results: ResultSet | None) -> list[tuple[str, str]]:
    """Returns the metrics that a set has, as (label, name)."""
    if results is None:
        return [(metric.label, metric.name) for metric in METRICS[:1]]
    return [(metric.label, metric.name) for metric in METRICS if any(row.measure(metric.name) for row in results.rows)]


def first_methods(results: ResultSet | None) -> list[str]:
    """Returns the methods to begin with: few enough to tell apart."""
    names = results.methods() if results else ()
    chosen = [name for name in FIRST_METHODS if name in names]
    return chosen if len(chosen) > 2 else list(theme.method_order(names))[:MAX_FIRST]


def first_ratio(results: ResultSet | None) -> float | None:
    """Returns the ratio to begin with: the one nearest to 0.3."""
    return min(results.ratios(), key=lambda ratio: abs(ratio - 0.3), default=None) if results else None


def compare_banner(results: ResultSet | None, problems: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns badge, origin and summary of a set, and what was left out."""
    if results is None:
        return {"kind": "none", "badge": "NO RESULTS", "details": "", "question": "", "verdict": NO_RESULTS, "notices": list(problems)}
    source = results.provenance
    num_tokens = max(row.N for row in results.rows)
    parts = (
        source.model,
        source.dtype,
        hardware(source),
        f"data {data_name(results.data)}",
        f"n = {results.n}, {results.repeats} round{'s' if results.repeats > 1 else ''} each",
        f"{num_tokens:,} document tokens",
        source.created[:10],
    )
    notices = []
    if results.rows_yes_no:
        notices.append(f"{results.rows_yes_no[0].n} of the questions want yes or no; the file also has their rows apart.")
    if results.skipped:
        notices.append(f"{results.skipped} samples did not fit the model and are not in these numbers.")
    return {
        "kind": source.mode,
        "badge": source.mode.upper(),
        "details": " · ".join(part for part in parts if part),
        "question": "",
        "verdict": summary(results),
        "notices": [*notices, *problems],
    }


def summary(results: ResultSet) -> str:
    """Returns one sentence on QCFuse and one on who does better, at the ratio nearest to 0.3."""
    ratio = first_ratio(results)
    ours = results.row("qcfuse", ratio)
    if ours is None or ours.kl_to_full is None:
        return f"{len(results.methods())} methods measured; QCFuse is not among them."
    gain, kl = ours.speedup, ours.kl_to_full
    same = [row for row in results.rows if row.ratio == ours.ratio and row.kl_to_full and row is not ours]
    closer = sorted((row for row in same if row.kl_to_full and row.kl_to_full.mean < kl.mean), key=lambda row: row.kl_to_full.mean)
    first = f"At ratio {ours.ratio:g} QCFuse answers {gain.median:.2f}× as fast as full prefill [{gain.lo:.2f}, {gain.hi:.2f}]"
    first += f", KL to it {measure_words(ours.measure('kl_to_full'), 'kl_to_full')}."
    if not closer:
        return f"{first} None of the other {len(same)} methods is closer to full prefill at that ratio."
    best = closer[0]
    return (
        f"{first} {len(closer)} of the other {len(same)} methods are closer to full prefill at that ratio, the closest is "
        f"{theme.method_label(best.method)} ({best.kl_to_full.mean:.3f})."
    )


def published() -> go.Figure:
    """Returns the papers' own figure."""
    return published_figure(msgspec.json.decode(PUBLISHED_FILE.read_bytes(), type=PublishedInfo))


def published_setting() -> str:
    """Returns what the papers' figure was measured with."""
    return msgspec.json.decode(PUBLISHED_FILE.read_bytes(), type=PublishedInfo).setting


def parse_pick(value: Any) -> tuple[str, float]:
    """Returns the method and ratio that a row of the table stands for. Raises BadRequest where a client sent anything else."""
    method, ratio = (value.get("method"), value.get("ratio")) if isinstance(value, dict) else (None, None)
    if not isinstance(method, str) or not (ratio is None or isinstance(ratio, int | float)):
        raise BadRequest("The row names no method; press a button of the table.")
    return method, 0.3 if ratio is None else float(ratio)


def download_note(results: ResultSet | None) -> str:
    """Returns how a set was made."""
    if results is None:
        return ""
    return f"Made by: {results.command or 'a command that the file does not name'} (commit {results.provenance.commit})."


def metric_help(name: str) -> str:
    """Returns what a metric is and which way is better."""
    metric = metric_of(name)
    return f"{metric.meaning[0].upper()}{metric.meaning[1:]}; {'lower' if metric.low_is_better else 'higher'} is better."
