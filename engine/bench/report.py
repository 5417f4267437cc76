"""What benchmarks print: a table for people and, last, one JSON object."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns median, min and max."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


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
    print(_json(result), flush=True)


def write_json(result: dict[str, object], path: Path) -> None:
    """Writes the object that `print_json` prints, indented; a half-written file never stands under its name."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(_json(result, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def _json(result: dict[str, object], indent: int | None = None) -> str:
    return json.dumps(rounded(result), ensure_ascii=False, allow_nan=False, indent=indent)
