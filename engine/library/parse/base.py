"""What every parser returns, and the collector that keeps texts clean and within their limits."""

import re
import unicodedata
from dataclasses import dataclass, field

from engine.errors import BadDocument

MAX_TITLE_CHARS = 80
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n\s*\n+")
_DROPPED = {"Cc", "Cs", "Cn", "Co"}
# One letter of a PDF's font for two or three of the text's.
_LIGATURES = str.maketrans(
    dict(zip("\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
)
# What ends a sentence rather than a title, in any script.
_SENTENCE_ENDS = (*".,;!?:", *"。．！？；：、，｡", *"،؛؟۔।॥")
# Soft hyphens, blanks without width and marks that change the direction of what follows.
_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph or a table's row: the heading it stands under, its text, and its page or row from 1 (0 where there is none)."""

    heading: str
    text: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A document as plain text.

    Args:
        title: what the text calls itself, "" where it does not.
        unit: what passages are numbered by, "page", "row" or "".
        num_units: how many of them the document has.
        is_table: whether every passage is a row that stays whole.
    """

    title: str
    unit: str
    num_units: int
    is_table: bool
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Bounds that hold inside the parsing process; `LibraryLimits` says what each is."""

    num_pages: int
    num_rows: int
    num_chars: int
    unpacked_bytes: int
    time_s: float
    memory_bytes: int


@dataclass(slots=True)
class Collector:
    """Takes passages one by one. Messages of errors lack their subject, the file, which the caller knows."""

    limits: ParseLimits
    unit: str = ""
    is_table: bool = False
    passages: list[Passage] = field(default_factory=list)
    num_chars: int = 0

    def add(self, text: str, heading: str = "", number: int = 0) -> None:
        """Takes a text, split at its blank lines. Raises BadDocument where there is more text than may be."""
        for part in _BLANK_LINES.split(clean(text)):
            if not part.strip():
                continue
            self.num_chars += len(part)
            if self.num_chars > self.limits.num_chars:
                raise BadDocument(f"has more than {self.limits.num_chars:,} characters of text; split it into smaller files.")
            self.passages.append(Passage(heading, part.strip(), number))

    def done(self, title: str, num_units: int = 0) -> ParsedText:
        """Returns the whole text. Raises BadDocument where there is none."""
        if not self.passages:
            raise BadDocument("has no text in it; there is nothing to ask about.")
        return ParsedText(one_line(title), self.unit, num_units, self.is_table, tuple(self.passages))


def clean(text: str) -> str:
    """Returns text without control, unassigned, private and unseen characters, composed, with runs of blanks made one."""
    text = text.translate(_LIGATURES).replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n\n")
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _DROPPED) if not text.isprintable() else text
    return _SPACES.sub(" ", unicodedata.normalize("NFC", _UNSEEN.sub("", kept)))


def one_line(text: str, num_chars: int = MAX_TITLE_CHARS) -> str:
    """Returns a text on one line, cut at a word where it is longer than `num_chars`."""
    line = " ".join(clean(text).split())
    if len(line) <= num_chars:
        return line
    cut = line[:num_chars]
    head, _, _ = cut.rpartition(" ")
    return f"{head if len(head) > num_chars // 2 else cut}…"


def first_line_title(text: str) -> str:
    """Returns the first line where it looks like a title: short, and not a sentence."""
    first, _, rest = text.strip().partition("\n")
    first = first.strip()
    looks = 2 <= len(first) <= MAX_TITLE_CHARS and not first.endswith(_SENTENCE_ENDS) and bool(rest.strip())
    return first if looks else ""
