"""Made-up results of realistic shape: eighteen methods over five ratios, with intervals, differences and costs.

The numbers follow two simple curves (time by rows computed, distance to full prefill falling with the ratio), so tests
can say what must come out; nothing here was measured.
"""

import math
from dataclasses import dataclass, replace

from engine.results import Cost, Difference, EqualQuality, Interval, KvDistance, MedianInterval, ResultSet, Row, Spread
from engine.types import Provenance

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5)
FULL_S, NUM_DOC, NUM_QUESTION, SET_SIZE = 6.2, 2_440, 36, 60
SOURCE = Provenance(
    "live", "2026-11-30 09:12 UTC", "0123abc", "SmolLM2-135M-Instruct", "main", "Q4_1 dequantised", "float32", "Test(R) CPU @ 2.50GHz", 2,
    "torch", 1840.0, "not dropped", {"torch": "2.13"},
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How a made-up method behaves: KL without any recompute, how fast it falls, and the share of a prefill its choice costs."""

    kl: float
    falls: float
    probe: float
    context: str = "system"


SHAPES = {
    "random": Shape(0.62, 1.1, 0.001),
    "epic": Shape(0.36, 2.6, 0.001),
    "cacheblend": Shape(0.34, 2.9, 0.035),
    "kvshare": Shape(0.42, 2.0, 0.045),
    "qclast": Shape(0.38, 2.2, 0.026),
    "qcall": Shape(0.27, 3.6, 0.09),
    "qcfuse": Shape(0.30, 3.2, 0.021),
    "qcfuse_cv": Shape(0.29, 3.3, 0.024),
    "infoflow": Shape(0.31, 3.0, 0.03),
    "qcfuse_learned": Shape(0.25, 3.6, 0.052),
    "qcfuse+primed": Shape(0.13, 4.4, 0.021, "primed"),
    "qcfuse+k_shift": Shape(0.19, 3.0, 0.026),
    "qcfuse_learned+primed": Shape(0.10, 4.6, 0.053, "primed"),
    "qcfuse_learned+k_shift": Shape(0.15, 3.4, 0.056),
}


def speedup(ratio: float, probe: float) -> float:
    """Returns the made-up gain: 80 % of what the rows computed allow."""
    return 0.8 / (ratio + NUM_QUESTION / NUM_DOC + probe)


def make_row(method: str, ratio: float | None, kl: float, gain: float, probe: float, n: int, context: str) -> Row:
    """Returns one row; every quality follows from the distance to full prefill."""
    time, good = FULL_S / gain, math.exp(-2.2 * kl)
    values = {"rouge_l": 0.32 * good, "f1": 0.30 * good, "exact_match": 0.12 * good, "answered": 0.52 * good, "gold_nll": 2.1 + 1.4 * kl}
    half = 1.0 / math.sqrt(n)
    intervals = {name: Interval(value, value - 0.22 * half, value + 0.22 * half) for name, value in values.items()}
    return Row(
        method, ratio, n, NUM_DOC, NUM_QUESTION, Spread(time, 0.85 * time, 1.2 * time),
        MedianInterval(gain, gain * (1 - 0.2 * half), gain * (1 + 0.24 * half)), limit=gain / 0.8, probe_share=probe, limit_share=0.8,
        parts_s={"probe": probe * FULL_S, "select": 0.004, "load_wait": 0.002, "recompute": max(0.0, time - probe * FULL_S), "head": 0.008},
        kl_to_full=Interval(kl, kl * (1 - 2.4 * half) if kl else 0.0, kl * (1 + 2.8 * half)), span_recall=min(1.0, 2 * (ratio or 0)),
        same_answer=good**2, loaded_mb=0.0 if method == "full" else 110.0, context=context, rows_share=ratio or 0.0,
        kv_distance=KvDistance(0.2 * kl, 0.3 * kl), intervals=intervals, **values,
    )  # fmt: skip


def sample_results(
    data: str = "two-hop", n: int = SET_SIZE, name: str = "fuse-two-hop", methods: tuple[str, ...] = tuple(SHAPES)
) -> ResultSet:
    """Returns a set of full prefill, direct reuse, APE and the given methods."""
    rows = [
        make_row("full", None, 0.0, 1.0, 0.0, n, ""),
        make_row("reuse", None, 0.85, 17.0, 0.0, n, "system"),
        make_row("ape", None, 0.66, 16.2, 0.0, n, "system"),
    ]
    for method in methods:
        shape = SHAPES[method]
        rows += [
            make_row(method, r, shape.kl * math.exp(-shape.falls * r), speedup(r, shape.probe), shape.probe, n, shape.context)
            for r in RATIOS
        ]
    found = ResultSet(
        "fuse", data, n, tuple(rows), replace(SOURCE, mode="replay"), repeats=3, context="system", max_new_tokens=24,
        costs=(Cost("system", Spread(6.9, 6.2, 7.4), 354.0, 110.0, n), Cost("primed", Spread(8.3, 7.4, 9.0), 294.0, 213.0, n)),
        command=f"python -m engine.bench fuse --data {data} --methods all --n {n} --json", name=name,
    )  # fmt: skip
    return replace(found, comparisons=differences(found), latency_at_equal_quality=equal_quality(found))


def differences(results: ResultSet) -> tuple[Difference, ...]:
    """Returns every row against full prefill and, at the same ratio, QCFuse against every other method."""
    made, full = [], results.row("full")
    for row in results.rows:
        if row.method != "full" and full:
            made += _all_metrics(row, full)
        others = [o for o in results.rows if o.method not in ("full", "qcfuse") and o.ratio in (row.ratio, None)]
        made += [found for other in others if row.method == "qcfuse" for found in _all_metrics(row, other)]
    return tuple(made)


def _all_metrics(row: Row, other: Row) -> list[Difference]:
    made = [_difference(row, other, "ttft_ratio", row.ttft_s.median / other.ttft_s.median, 0.02)]
    for metric in ("kl_to_full", "gold_nll", "rouge_l", "f1", "exact_match"):
        value = row.measure(metric).mean - other.measure(metric).mean
        made.append(_difference(row, other, metric, value, 0.25 * abs(value) + 0.09 / math.sqrt(row.n)))
    return made


def _difference(row: Row, other: Row, metric: str, value: float, half: float) -> Difference:
    return Difference(row.method, row.ratio, other.method, other.ratio, metric, value, value - half, value + half, row.n)


def equal_quality(results: ResultSet) -> tuple[EqualQuality, ...]:
    """Returns QCFuse against three rivals at ratio 0.3, and one rival it never gets as close as."""
    made = []
    for versus, ratio_of_times in (("cacheblend", 0.82), ("epic", 0.71), ("kvshare", 0.55), ("qcall", 0.74)):
        row = results.row(versus, 0.3)
        if row and row.kl_to_full and results.row("qcfuse", 0.3):
            interval = Interval(ratio_of_times, ratio_of_times - 0.06, ratio_of_times + 0.07)
            made.append(EqualQuality("qcfuse", versus, 0.3, row.kl_to_full.mean, interval, row.n, True, 0.24))
    learned = results.row("qcfuse_learned+primed", 0.3)
    if learned and learned.kl_to_full:
        made.append(EqualQuality("qcfuse", "qcfuse_learned+primed", 0.3, learned.kl_to_full.mean, None, learned.n, False))
    return tuple(made)
