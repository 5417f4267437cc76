"""Benchmark results as files: JSON that `python -m engine.bench fuse` writes, checked on the way in."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.errors import BadResultsFile
from engine.results import Interval, MedianInterval, ResultSet, Row

FORMAT, BENCH = "fusescope-results/1", "fuse"
RESULTS_DIR = Path(__file__).resolve().parent.parent / "assets" / "results"
UPLOADED = "uploaded"
MAX_BYTES, MAX_ROWS, MAX_COMPARISONS, MAX_TEXT = 20 * 2**20, 5_000, 50_000, 2_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,59}")


class Folder(NamedTuple):
    """The sets of a folder, and one sentence on each file that was left out."""

    sets: tuple[ResultSet, ...]
    problems: tuple[str, ...]


class _Head(msgspec.Struct):
    bench: str = ""
    format: str = ""


def load_folder(folder: Path = RESULTS_DIR) -> Folder:
    """Returns all sets of a folder in order of file name; files of other benchmarks are passed over without a word."""
    sets, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            data = _read(path)
            if _head(data).bench in ("", BENCH):
                sets.append(parse_results(data, path.stem))
        except BadResultsFile as error:
            problems.append(f"{path.name} is left out: {error}")
    return Folder(tuple(sets), tuple(problems))


def load_results(path: Path) -> ResultSet:
    """Returns the set of a file, named after it. Raises BadResultsFile with one sentence."""
    return parse_results(_read(path), path.stem)


def parse_results(data: bytes, name: str = UPLOADED) -> ResultSet:
    """Returns the set in a file's bytes, labelled as recorded and called `name`. Raises BadResultsFile with one sentence."""
    if len(data) > MAX_BYTES:
        raise BadResultsFile(f"The results file has {len(data):,} bytes; at most {MAX_BYTES:,} are read.")
    head = _head(data)
    if head.bench not in ("", BENCH):
        raise BadResultsFile(f"The file is of the benchmark {head.bench[:40]!r}; this page reads results of {BENCH!r}.")
    if head.format != FORMAT:
        raise BadResultsFile(
            f"The results file is of the version {head.format[:40]!r}; this Fusescope reads {FORMAT!r}: measure again with "
            "python -m engine.bench fuse."
        )
    try:
        found = msgspec.json.decode(data, type=ResultSet)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadResultsFile(f"The results file does not hold valid results: {str(error)[:200]}.") from None
    _check(found)
    return replace(found, name=name, provenance=replace(found.provenance, mode="replay"))


def dump_results(results: ResultSet) -> bytes:
    """Returns a set as the bytes of a file that `parse_results` reads back."""
    plain = msgspec.to_builtins(results)
    plain.pop("name")
    return msgspec.json.format(msgspec.json.encode({"format": FORMAT, **plain}), indent=1)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadResultsFile(f"The results file {path.name!r} cannot be read: {error.strerror}.") from None


def _head(data: bytes) -> _Head:
    try:
        return msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadResultsFile(f"This is not a results file: {str(error)[:200]}.") from None


def _check(found: ResultSet) -> None:
    if not found.rows or len(found.rows) > MAX_ROWS or len(found.comparisons) > MAX_COMPARISONS:
        raise BadResultsFile(f"The results file has {len(found.rows):,} rows; 1 to {MAX_ROWS:,} are read.")
    for name in _names(found):
        if not _NAME.fullmatch(name):
            raise BadResultsFile(f"The results file has a method called {name[:60]!r}; names are letters, digits and . _ + -.")
    texts = (found.data, found.command, found.context, *(v for v in msgspec.to_builtins(found.provenance).values() if isinstance(v, str)))
    if any(len(text) > MAX_TEXT for text in texts):
        raise BadResultsFile(f"The results file has a text of more than {MAX_TEXT:,} characters.")
    places = [(row.method, row.ratio) for row in found.rows]
    if len(set(places)) != len(places):
        raise BadResultsFile("The results file holds a method twice at the same ratio.")
    for row in (*found.rows, *found.rows_yes_no):
        _check_row(row)


def _names(found: ResultSet) -> Iterator[str]:
    yield from (row.method for row in (*found.rows, *found.rows_yes_no))
    for pair in (*found.comparisons, *found.latency_at_equal_quality):
        yield from (pair.method, pair.versus)


def _check_row(row: Row) -> None:
    where = f"The results file's {row.method} at ratio {row.ratio}"
    if row.ratio is not None and not 0.0 <= row.ratio <= 1.0:
        raise BadResultsFile(f"{where} is out of range; ratios are 0 to 1.")
    if row.n < 1 or not 0 < row.ttft_s.min <= row.ttft_s.median <= row.ttft_s.max:
        raise BadResultsFile(f"{where} has n {row.n} and times {row.ttft_s.min:g} to {row.ttft_s.max:g} s around {row.ttft_s.median:g} s.")
    for field in fields(row):
        value = getattr(row, field.name)
        if isinstance(value, Interval | MedianInterval) and value.lo > value.hi:
            raise BadResultsFile(f"{where} has an interval of {field.name} that ends before it begins.")
