"""Rows of a benchmark: one method at one ratio over all samples, computed from the records alone."""

import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from engine.bench.configs import FULL, Config
from engine.bench.costs import break_even
from engine.bench.intervals import Interval, interval
from engine.bench.records import Columns, MethodRecord, SampleRecord
from engine.bench.report import spread

# Metrics of a row that are plain means over the samples, with intervals of their own.
MEANS = ("rouge_l", "f1", "exact_match", "answered", "gold_nll", "span_recall")


def summary_rows(
    records: Sequence[SampleRecord], configs: Sequence[Config], costs: Sequence[Mapping[str, object]]
) -> list[dict[str, object]]:
    """Returns a row for every method and ratio, [] without records.

    Args:
        costs: what building the chunk caches took, of `build_costs`.
    """
    if not records:
        return []
    columns = Columns(records)
    return [_row(columns, config, costs) for config in configs]


def _row(columns: Columns, config: Config, costs: Sequence[Mapping[str, object]]) -> dict[str, object]:
    records, own, full = columns.records, columns.methods(config.label), columns.methods(FULL)
    speedups = [f.ttft_s / m.ttft_s for m, f in zip(own, full, strict=True)]
    shares = [m.parts_s["probe"] / f.ttft_s for m, f in zip(own, full, strict=True)]
    limits = [_limit(config, record, share) for record, share in zip(records, shares, strict=True)]
    by_work = _work_limits(config, own, shares)
    means = {name: interval(columns.of(config.label, name)) for name in MEANS}
    ttft_s = spread([method.ttft_s for method in own])
    return {
        "method": config.method,
        "ratio": config.ratio,
        "n": len(records),
        "N": int(statistics.median(record.num_doc_tokens for record in records)),
        "q": int(statistics.median(record.num_question_tokens for record in records)),
        "ttft_s": ttft_s,
        "speedup": _named(interval(np.array(speedups), np.median), "median"),
        "limit": statistics.median(limits),
        "probe_share": statistics.median(shares),
        "limit_share": statistics.median(gain / most for gain, most in zip(speedups, limits, strict=True)),
        "work_limit": statistics.median(by_work) if by_work else None,
        "work_limit_share": statistics.median(gain / most for gain, most in zip(speedups, by_work, strict=True)) if by_work else None,
        "parts_s": {part: statistics.median(method.parts_s[part] for method in own) for part in own[0].parts_s},
        **{name: found.value if found else None for name, found in means.items()},
        "same_answer": _mean(columns.of(config.label, "same_answer")),
        "kl_to_full": _named(interval(columns.of(config.label, "kl_to_full"))),
        "loaded_mb": statistics.median(method.loaded_bytes for method in own) / 1e6,
        "context": own[0].context,
        "rows_share": statistics.fmean(method.rows_share for method in own),
        "kv_distance": _distance(own),
        "intervals": {name: _named(found) for name, found in means.items()},
        "break_even": break_even(costs, own[0].context, statistics.median(m.ttft_s for m in full), ttft_s["median"]),
    }


def _limit(config: Config, record: SampleRecord, probe_share: float) -> float:
    """Returns the compute limit of the speed-up, 1 / (r + q / N + s); s is the probe's measured share of a full prefill."""
    if config.method == FULL:
        return 1.0
    return 1.0 / ((config.ratio or 0.0) + record.num_question_tokens / record.num_doc_tokens + probe_share)


def _work_limits(config: Config, own: Sequence[MethodRecord], shares: Sequence[float]) -> list[float]:
    """Returns the limit of each sample by its arithmetic, 1 / (work + s): tokens chosen late in a prompt attend to more keys than others.

    [] where a record is of a version that did not count.
    """
    if config.method == FULL:
        return [1.0] * len(own)
    if any(method.work_share is None for method in own):
        return []
    return [1.0 / (method.work_share + share) for method, share in zip(own, shares, strict=True)]


def _named(found: Interval | None, name: str = "mean") -> dict[str, float] | None:
    return found.named(name) if found else None


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _distance(own: Sequence[MethodRecord]) -> dict[str, float] | None:
    known = [(method.kv_keys, method.kv_values) for method in own if method.kv_keys is not None and method.kv_values is not None]
    if not known:
        return None
    keys, values = zip(*known, strict=True)
    return {"keys": statistics.fmean(keys), "values": statistics.fmean(values)}
