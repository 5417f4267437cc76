"""Benchmark results as tables. Knows nothing of Gradio."""

from collections.abc import Iterable
from typing import Any

from engine.claims.verdicts import Gain, gain_of
from engine.results import EqualQuality, Measure, ResultSet, Row, metric_of
from viz import theme
from viz.figures import words

NONE = "–"
BETTER, WORSE, SAME = "▲", "▼", "○"
NOTE = (
    "Time: median over the questions (lowest to highest). Brackets: 95 % bootstrap interval. "
    "▲ better and ▼ worse: the 95 % interval of the difference on the same questions excludes 0; ○ it does not. "
    "Many differences are tested and none is corrected for that. "
    "Of the limit: share of the speed-up that the number of computed tokens allows."
)
# What the papers say where a pair of methods is theirs.
PUBLISHED = {("qcfuse", rival): "40 % less" for rival in ("cacheblend", "epic", "kvshare", "qclast")}
EQUAL_NOTE = (
    "The first method's time where its KL to full prefill is that of the rival at the rival's ratio, interpolated between measured ratios. "
    "Published: “40 % lower latency than baselines at equal accuracy”, there equal ROUGE-L (arXiv 2604.08585; 1× A100, 7–8B models)."
)


def results_table(results: ResultSet, methods: Iterable[str], metric: str, opens: bool) -> dict[str, Any]:
    """Returns every ratio of the chosen methods; `opens` gives each row a button that asks for its run."""
    label = metric_of(metric).label
    columns = ["Method", "Ratio", "Time to first token", "Speed-up", "Of the limit", label, "against full", "against QCFuse", "n"]
    rows = [_row(results, row, metric, opens) for method in theme.method_order(set(methods)) for row in results.of_method(method)]
    note = NOTE if metric_of(metric).compared else f"{NOTE} {label}: the file holds no paired differences."
    return {
        "caption": "Every method and ratio",
        "columns": columns,
        "rows": rows,
        "reason": "No method is chosen; tick at least one.",
        "note": note,
    }


def _row(results: ResultSet, row: Row, metric: str, opens: bool) -> dict[str, Any]:
    value, time, gain = row.measure(metric), row.ttft_s, row.speedup
    against_full, against_ours = (_gain(results, row, versus, metric) for versus in ("full", "qcfuse"))
    cells: list[tuple[str, float | str | None]] = [
        (theme.method_label(row.method), theme.method_label(row.method).lower()),
        (NONE if row.ratio is None else f"{row.ratio:g}", row.ratio),
        (f"{words.seconds(time.median)} ({words.seconds(time.min)} to {words.seconds(time.max)})", time.median),
        ("1×" if row.method == "full" else f"{gain.median:.2f}× [{gain.lo:.2f}, {gain.hi:.2f}]", gain.median),
        (NONE if row.limit_share is None or row.method == "full" else words.percent(row.limit_share), row.limit_share),
        (measure_words(value, metric), value.mean if value else None),
        (gain_words(against_full, metric), against_full.value if against_full else None),
        (gain_words(against_ours, metric), against_ours.value if against_ours else None),
        (f"{row.n:,}", row.n),
    ]
    return {
        "cells": [text for text, _ in cells],
        "keys": [key for _, key in cells],
        "color": theme.method_color(row.method),
        "pick": {"method": row.method, "ratio": row.ratio} if opens else None,
    }


def _gain(results: ResultSet, row: Row, versus: str, metric: str) -> Gain | None:
    return gain_of(results, row, versus, metric) if row.method != versus and metric_of(metric).compared else None


def measure_words(value: Measure | None, metric: str) -> str:
    """Returns '0.115 [0.080, 0.160]'."""
    form = metric_of(metric).form
    if value is None:
        return NONE
    return f"{value.mean:{form}}" if value.lo is None else f"{value.mean:{form}} [{value.lo:{form}}, {value.hi:{form}}]"


def gain_words(gain: Gain | None, metric: str) -> str:
    """Returns '▲ 0.120 better [0.060, 0.180]'; '○' where the interval holds 0."""
    if gain is None:
        return NONE
    form, lower, upper = metric_of(metric).form, *sorted((abs(gain.lo), abs(gain.hi)))
    if gain.lo > 0:
        return f"{BETTER} {gain.value:{form}} better [{lower:{form}}, {upper:{form}}]"
    if gain.hi < 0:
        return f"{WORSE} {-gain.value:{form}} worse [{lower:{form}}, {upper:{form}}]"
    return f"{SAME} no clear difference"


def equal_quality_table(results: ResultSet, methods: Iterable[str], ratio: float | None) -> dict[str, Any]:
    """Returns time saved at equal quality, of the chosen methods against rivals at the given ratio."""
    chosen = set(methods)
    pairs = [p for p in results.latency_at_equal_quality if {p.method, p.versus} <= chosen and p.versus_ratio == ratio]
    order = theme.method_order({name for pair in pairs for name in (pair.method, pair.versus)})
    pairs.sort(key=lambda pair: (order.index(pair.method), order.index(pair.versus)))
    reason = "No pair of the chosen methods was compared at this ratio."
    return {
        "caption": "Time at equal quality",
        "columns": ["Method", "Rival at its ratio", "Time saved against it", "Published", "n"],
        "rows": [_equal_row(pair) for pair in pairs],
        "reason": reason,
        "note": EQUAL_NOTE,
    }


def _equal_row(pair: EqualQuality) -> list[str]:
    rival = (
        f"{theme.method_label(pair.versus)} at {pair.versus_ratio:g}" if pair.versus_ratio is not None else theme.method_label(pair.versus)
    )
    own = theme.method_label(pair.method) + ("" if pair.ratio is None else f" at {pair.ratio:.2g}")
    return [own, f"{rival}, KL {pair.kl:.3f}", saving_words(pair), PUBLISHED.get((pair.method, pair.versus), NONE), f"{pair.n:,}"]


def saving_words(pair: EqualQuality) -> str:
    """Returns '▲ 29 % less [22, 35]', or why there is no number."""
    found = pair.ttft_ratio
    if found is None or not pair.reached:
        return f"{WORSE} not as close at any ratio measured"
    low, high = sorted((100 * (1 - found.hi), 100 * (1 - found.lo)))
    saved = 100 * (1 - found.mean)
    bound = "at least " if pair.bound and saved >= 0 else "at most " if pair.bound else ""
    if low <= 0 <= high:
        return f"{SAME} no clear difference [{low:+.0f}, {high:+.0f} %]"
    if saved > 0:
        return f"{BETTER} {bound}{saved:.0f} % less [{low:.0f}, {high:.0f}]"
    return f"{WORSE} {bound}{-saved:.0f} % more [{-high:.0f}, {-low:.0f}]"
