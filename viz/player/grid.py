"""Benchmark points for the budget: times to first token by ratio, where they come from the machine and model of the run."""

from collections import defaultdict
from typing import Any

from engine.results import ResultSet
from engine.types import Run


def time_points(results: ResultSet | None, run: Run) -> dict[str, Any] | None:
    """Returns {label, points: {method: [[ratio, seconds], ...]}}, or None where the numbers cannot be set beside the run's.

    Times of another model, machine or number of threads are not comparable with the run's and are left out.
    """
    if results is None or not _comparable(results, run):
        return None
    points: dict[str, list[list[float]]] = defaultdict(list)
    for row in results.rows:
        if row.ratio is not None:
            points[row.method].append([row.ratio, row.ttft_s.median])
    if not points:
        return None
    created = results.provenance.created
    return {"label": f"{results.data}, n = {results.n}, {created}", "points": {name: sorted(values) for name, values in points.items()}}


def _comparable(results: ResultSet, run: Run) -> bool:
    ours, theirs = run.provenance, results.provenance
    return all(getattr(ours, name) == getattr(theirs, name) for name in ("model", "device", "num_threads", "dtype"))
