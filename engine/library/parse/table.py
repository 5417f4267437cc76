"""Tables: every row is a passage that names its columns, so that it can be read by itself."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from engine.errors import BadDocument
from engine.library.parse.base import Collector, ParsedText, ParseLimits, one_line
from engine.library.parse.kinds import decode

DELIMITERS = ",;\t|"
_NUM_SAMPLE_LINES = 50
_NOTE = re.compile(r"\ufeff?sep=([^\s\"])\r?\n", re.IGNORECASE)


def parse(data: bytes, limits: ParseLimits) -> ParsedText:
    """Returns the rows of a .csv file, numbered from 1 below the header. Raises BadDocument."""
    text, named = _without_note(decode(data))
    csv.field_size_limit(limits.num_chars)
    collector = Collector(limits, unit="row", is_table=True)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=named or _delimiter(text))
    header: list[str] | None = None
    num_rows = 0
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _names(cells)
                if header:
                    continue
                header = [f"Column {i + 1}" for i in range(len(cells))]
            num_rows += 1
            if num_rows > limits.num_rows:
                raise BadDocument(f"has more than {limits.num_rows:,} rows; split it into smaller tables.")
            collector.add(_row_text(header, cells), number=num_rows)
    except csv.Error as error:
        raise BadDocument(f"is not a table that can be read (line {reader.line_num}: {error}); export it anew as CSV.") from None
    return collector.done("", num_rows)


def _without_note(text: str) -> tuple[str, str]:
    """Returns the table and the mark that a first line such as `sep=;` names, which spreadsheets write and read but do not show."""
    note = _NOTE.match(text)
    return (text[note.end() :], note[1]) if note else (text, "")


def _delimiter(text: str) -> str:
    """Returns the mark that parts the most lines into the same number of cells."""
    lines = [line for line in text[:200_000].splitlines()[:_NUM_SAMPLE_LINES] if line.strip()]

    def regular(mark: str) -> tuple[int, int]:
        counts = Counter(line.count(mark) for line in lines)
        counts.pop(0, None)
        (most,) = counts.most_common(1) or [(0, 0)]
        return most[1], most[0]

    return max(DELIMITERS, key=regular) if lines else ","


def _names(cells: Sequence[str]) -> list[str]:
    """Returns the first row as column names where it can be one, else none: several cells with words and none with a number.

    A column without a name is called by its number, the second one of a name as such.
    """
    names = [cell.strip() for cell in cells]
    if sum(map(bool, names)) > 1 and not any(map(_is_number, names)):
        seen = Counter[str]()
        for i, name in enumerate(names):
            seen[name] += 1
            names[i] = f"Column {i + 1}" if not name else name if seen[name] == 1 else f"{name} ({seen[name]})"
        return names
    return []


def _row_text(header: Sequence[str], cells: Sequence[str]) -> str:
    named = [
        f"{one_line(header[i]) if i < len(header) else f'Column {i + 1}'}: {' '.join(cell.split())}"
        for i, cell in enumerate(cells)
        if cell.strip()
    ]
    return "; ".join(named) + "."


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ".").strip("%€$ "))
    except ValueError:
        return False
    return True
