"""Reads a log line by line, packed or not, with the file, the line and the reason in every complaint; never holds it whole."""

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from engine.errors import BadRequest, Cancelled

MAX_LINE_CHARS = 64 * 2**20
_REPORT_EVERY = 10_000


class Line(NamedTuple):
    """One object of a log and where it stands."""

    place: str
    value: dict

    def number(self, field: str, least: float = 0.0) -> float:
        """Returns a number of the line. Raises BadRequest where it is missing, no number or too small."""
        value = self.value.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
            raise self.broken(f"{field!r} is {_short(value)}; it must be a number of at least {least:g}")
        return value

    def items(self, field: str) -> list:
        """Returns a list of the line. Raises BadRequest where it is missing or none."""
        value = self.value.get(field)
        if not isinstance(value, list):
            raise self.broken(f"{field!r} is {_short(value)}; it must be a list")
        return value

    def broken(self, reason: str) -> BadRequest:
        """Returns the complaint about this line."""
        return BadRequest(f"{self.place}: {reason}.")


def read_lines(path: Path, progress: Callable[[int], bool] | None = None) -> Iterator[Line]:
    """Yields the JSON objects of a file, empty lines passed over. Raises BadRequest, Cancelled.

    Args:
        progress: called with the number of lines read now and then; reading stops where it returns False.
    """
    number = 0
    with open_text(path) as file:
        try:
            for number, text in enumerate(iter(lambda: file.readline(MAX_LINE_CHARS), ""), 1):
                if progress is not None and number % _REPORT_EVERY == 0 and not progress(number):
                    raise Cancelled(f"Stopped reading {path.name} at line {number:,}.")
                if text.strip():
                    yield _parse(f"{path.name}, line {number}", text)
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise BadRequest(f"{path.name}, line {number + 1}: cannot be read ({str(error)[:100]}).") from None


def open_text(path: Path) -> io.TextIOBase:
    """Returns an open text file, unpacked where its name ends in .gz. Raises BadRequest."""
    try:
        return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"The log {str(path)!r} cannot be opened: {error.strerror}.") from None


class Clock:
    """Turns a log's times into seconds from its first one and complains about one that goes backwards."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._first: float | None = None
        self._last = 0.0

    def seconds(self, line: Line, field: str) -> float:
        """Returns the line's time. Raises BadRequest where it lies before the line above."""
        stamp = line.number(field)
        if self._first is None:
            self._first = stamp
        elif stamp < self._last:
            raise line.broken(f"{field!r} goes back from {self._last:g} to {stamp:g}; sort the log by time")
        self._last = stamp
        return (stamp - self._first) / self._per_second


def _parse(place: str, text: str) -> Line:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequest(f"{place}: is not JSON ({error.msg}).") from None
    except RecursionError:
        raise BadRequest(f"{place}: is nested too deep.") from None
    if not isinstance(value, dict):
        raise BadRequest(f"{place}: holds {_short(value)}; one JSON object a line is needed.")
    return Line(place, value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
