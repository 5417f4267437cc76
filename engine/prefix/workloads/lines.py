"""Reads a log line by line, packed or not, with the file, the line and the reason in every complaint; never holds it whole."""

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import BadRequest, Cancelled

MAX_LINE_CHARS = 64 * 2**20
# Of one prompt or answer: above every model's context, and what its columns still hold in memory.
MAX_TOKENS = 2**24
# Times and ids: nanoseconds since 1970 have 19 digits.
MAX_NUMBER = 1e20
# What reading a file raises where it is damaged; a damaged archive has an error of its own.
UNREADABLE = (OSError, EOFError, UnicodeError, zlib.error)
_REPORT_EVERY = 10_000
_GZIP = b"\x1f\x8b"


class Line(NamedTuple):
    """One object of a log and where it stands."""

    place: str
    value: dict

    def number(self, field: str, least: float = 0.0, most: float = MAX_NUMBER) -> float:
        """Returns a number of the line. Raises BadRequest where it is missing, no number, too small or too large."""
        return self.checked(field, self.value.get(field), least, most)

    def tokens(self, field: str) -> int:
        """Returns a number of tokens of the line. Raises BadRequest where it is none."""
        return int(self.number(field, most=MAX_TOKENS))

    def checked(self, name: str, value: Any, least: float = 0.0, most: float = MAX_NUMBER) -> float:
        """Returns a number that stands somewhere in the line under a name. Raises BadRequest where it is none, too small or too large."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.broken(f"{name!r} is {_short(value)}; it must be a number from {least:g} to {most:,.0f}")
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
                    place = f"{path.name}, line {number}"
                    yield object_line(place, parse_json(place, text))
        except UNREADABLE as error:
            raise unreadable(f"{path.name}, line {number + 1}", error) from None


def open_text(path: Path) -> io.TextIOBase:
    """Returns an open text file, unpacked where it is a gzip archive, whatever its name. Raises BadRequest."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(len(_GZIP)) == _GZIP
        opened = gzip.open(path) if is_packed else path.open("rb")  # noqa: SIM115 - the caller closes it
        mark = opened.peek(2)[:2]
    except OSError as error:
        raise BadRequest(f"The log {str(path)!r} cannot be opened: {error.strerror or str(error)[:100]}.") from None
    except (EOFError, zlib.error) as error:
        raise unreadable(f"{path.name}, line 1", error) from None
    # Windows writes a mark in front of UTF-8, and UTF-16 where a shell redirects.
    return io.TextIOWrapper(opened, encoding="utf-16" if mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig")


def unreadable(place: str, error: Exception) -> BadRequest:
    """Returns the complaint about a file whose bytes cannot be read from a place on."""
    return BadRequest(f"{place}: cannot be read ({str(error)[:100]}).")


def parse_json(place: str, text: str) -> Any:
    """Returns a JSON value. Raises BadRequest that names the place."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequest(f"{place}: is not JSON ({error.msg}); one whole JSON object a line is needed.") from None
    except ValueError as error:
        raise BadRequest(f"{place}: is not JSON that can be read ({str(error).partition(';')[0][:100]}).") from None
    except RecursionError:
        raise BadRequest(f"{place}: is nested too deep.") from None


def object_line(place: str, value: Any) -> Line:
    """Returns an object as a line of a log. Raises BadRequest where it is none."""
    if not isinstance(value, dict):
        raise BadRequest(f"{place}: holds {_short(value)}; one JSON object a line is needed.")
    return Line(place, value)


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


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
