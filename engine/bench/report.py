"""What benchmarks print: a table for people and, last, one JSON object; and the statistics in both."""

import json
import statistics
from collections.abc import Callable, Sequence

import numpy as np

DRAWS, SEED = 2_000, 0


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns median, min and max."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def interval(values: Sequence[float], statistic: Callable[..., np.ndarray] = np.mean, name: str = "mean") -> dict[str, float]:
    """Returns a statistic of samples with its 95 % percentile-bootstrap interval, lo and hi; seeded."""
    data = np.asarray(values, dtype=np.float64)
    centre = float(statistic(data))
    if len(data) < 2:
        return {name: centre, "lo": centre, "hi": centre}
    picks = np.random.default_rng(SEED).integers(0, len(data), size=(DRAWS, len(data)))
    low, high = np.percentile(statistic(data[picks], axis=1), [2.5, 97.5])
    return {name: centre, "lo": float(low), "hi": float(high)}


def rounded(value: object, digits: int = 5) -> object:
    """Returns a JSON-like value with its floats rounded to significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    return value


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows under a header, columns aligned, numbers to the right."""
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        first, *rest = (str(cell) for cell in row)
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        print("  ".join(cells))


def print_json(result: dict[str, object]) -> None:
    """Prints one JSON object on one line: the last line of every benchmark."""
    print(json.dumps(rounded(result), ensure_ascii=False, allow_nan=False), flush=True)
