"""Benchmark results as CSV. Knows nothing of Gradio."""

import csv
import io
from typing import Any

from engine.results import METRICS, ResultSet, Row


def results_csv(results: ResultSet) -> bytes:
    """Returns all rows with where they come from; an empty cell was not measured."""
    text = io.StringIO()
    table = [{**_origin(results), **_cells(row)} for row in results.rows]
    writer = csv.DictWriter(text, fieldnames=list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue().encode()


def _origin(results: ResultSet) -> dict[str, Any]:
    source = results.provenance
    texts = {"data": results.data, "model": source.model, "dtype": source.dtype, "device": source.device, "created": source.created}
    return {name: safe_cell(text) for name, text in texts.items()}


def _cells(row: Row) -> dict[str, Any]:
    time, gain = row.ttft_s, row.speedup
    first = {"method": row.method, "ratio": row.ratio, "n": row.n, "document_tokens": row.N, "question_tokens": row.q}
    times = {"ttft_s": time.median, "ttft_min_s": time.min, "ttft_max_s": time.max}
    gains = {"speedup": gain.median, "speedup_lo": gain.lo, "speedup_hi": gain.hi, "limit": row.limit, "limit_share": row.limit_share}
    quality: dict[str, float | None] = {}
    for metric in METRICS:
        mean, low, high = row.measure(metric.name) or (None, None, None)
        quality |= {metric.name: mean, f"{metric.name}_lo": low, f"{metric.name}_hi": high}
    rest = {"span_recall": row.span_recall, "loaded_mb": row.loaded_mb, "context": safe_cell(row.context), "break_even": row.break_even}
    return {**first, **times, **gains, **quality, **rest}


def safe_cell(text: str) -> str:
    """Returns text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
