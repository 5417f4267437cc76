"""Reads a file with roomy limits, as the child process would."""

from engine.library.limits import MIB
from engine.library.parse.base import ParseLimits
from engine.library.parse.child import parse_here
from engine.library.parse.kinds import kind_of

ROOMY = ParseLimits(num_pages=50, num_rows=500, num_chars=100_000, unpacked_bytes=5 * MIB, time_s=20, memory_bytes=512 * MIB)


def parse(kind: str, data: bytes | str, **limits):
    data = data.encode() if isinstance(data, str) else data
    assert kind_of(f"file.{kind}", data) == kind
    return parse_here(kind, data, ParseLimits(**{**{name: getattr(ROOMY, name) for name in ROOMY.__slots__}, **limits}))


def texts(parsed) -> list[str]:
    return [passage.text for passage in parsed.passages]
