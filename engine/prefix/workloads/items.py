"""Reads the objects of a log, one JSON object a line or one JSON array, one after the other: a file is never held whole."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.errors import BadRequest, Cancelled
from engine.prefix.workloads.lines import MAX_LINE_CHARS, UNREADABLE, Line, object_line, open_text, read_lines, unreadable

_PART_CHARS = 2**20
_BLANKS = re.compile(r"\s*")


def read_objects(path: Path, progress: Callable[[int], bool] | None = None) -> Iterator[Line]:
    """Yields the objects of a file, of JSON lines or of one JSON array. Raises BadRequest with file, place and reason, Cancelled."""
    with open_text(path) as file:
        try:
            is_array = next((char for char in iter(lambda: file.read(1), "") if not char.isspace()), "") == "["
        except UNREADABLE as error:
            raise unreadable(f"{path.name}, line 1", error) from None
    yield from read_items(path, progress) if is_array else read_lines(path, progress)


def read_items(path: Path, progress: Callable[[int], bool] | None = None) -> Iterator[Line]:
    """Yields the objects of a file that is one array. Raises BadRequest with file, item and reason, Cancelled."""
    with open_text(path) as file:
        array = _Array(path.name, file.read)
        try:
            number = 0
            while array.has_next(is_first=number == 0):
                # An item can be as long as thousands of lines.
                if progress is not None and not progress(number):
                    raise Cancelled(f"Stopped reading {path.name} at item {number:,}.")
                yield array.take(f"{path.name}, item {number}")
                number += 1
        except UNREADABLE as error:
            raise unreadable(f"{path.name}, item {number}", error) from None


class _Array:
    """The text of an array as far as it was read."""

    def __init__(self, name: str, read: Callable[[int], str]) -> None:
        self._name, self._read, self._text, self._at = name, read, "", 0
        self._decode = json.JSONDecoder().raw_decode

    def has_next(self, is_first: bool) -> bool:
        """Goes past what stands between two items and returns whether one follows. Raises BadRequest."""
        if is_first and self._sign() != "[":
            raise BadRequest(f"{self._name}: is no JSON array.")
        self._at += is_first
        sign = self._sign()
        if sign == "]" or is_first:
            return sign != "]"
        if sign != ",":
            raise BadRequest(f"{self._name}: its array is broken off or lacks a comma; choose a file that is whole.")
        self._at += 1
        return True

    def take(self, place: str) -> Line:
        """Returns the next item. Raises BadRequest."""
        self._sign()
        while True:
            try:
                value, self._at = self._decode(self._text, self._at)
                return object_line(place, value)
            except json.JSONDecodeError as error:
                # It may go on in what was not read yet; what was is read again, so twice as much is added each time.
                if len(self._text) - self._at > MAX_LINE_CHARS or not self._more():
                    raise BadRequest(f"{place}: is not JSON ({error.msg}).") from None
            except ValueError as error:
                raise BadRequest(f"{place}: is not JSON that can be read ({str(error).partition(';')[0][:100]}).") from None
            except RecursionError:
                raise BadRequest(f"{place}: is nested too deep.") from None

    def _sign(self) -> str:
        """Returns the next character that is no blank, "" at the end of the file."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        rest = self._text[self._at :]
        part = self._read(max(_PART_CHARS, len(rest)))
        self._text, self._at = rest + part, 0
        return bool(part)
