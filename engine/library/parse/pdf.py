"""PDF: the text of each page, without running heads and page numbers. Pictures of text are not read."""

import io
import re
from collections import Counter
from collections.abc import Sequence

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

from engine.errors import BadDocument
from engine.library.parse.base import Collector, ParsedText, ParseLimits, clean, first_line_title

MIN_CHARS_PER_PAGE = 8
_HYPHEN_BREAK = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")
_DIGITS = re.compile(r"\d+")
_POOR_TITLE = re.compile(r"untitled|microsoft word|^document\d*$|\.(docx?|tex|dvi|indd|pdf)$", re.IGNORECASE)
_MIN_PAGES_FOR_HEADS = 4


def parse(data: bytes, limits: ParseLimits) -> ParsedText:
    """Returns the text of a .pdf file, numbered by page. Raises BadDocument."""
    try:
        reader = _opened(data)
        num_pages = len(reader.pages)
        if num_pages > limits.num_pages:
            raise BadDocument(f"has {num_pages:,} pages; at most {limits.num_pages:,} are taken, so split it.")
        pages = _page_texts(reader, limits)
        title = clean(str((reader.metadata and reader.metadata.title) or "")).strip()
    except PyPdfError as error:
        raise BadDocument(f"is a damaged PDF ({type(error).__name__}); open it in a viewer and save it anew.") from None
    collector = Collector(limits, unit="page")
    for number, lines in enumerate(_without_heads(pages), 1):
        collector.add(_join_lines(lines), number=number)
    if collector.num_chars < MIN_CHARS_PER_PAGE * num_pages:
        raise BadDocument("has no text layer, its pages are pictures (a scan?); run text recognition on it first.")
    if not title or _POOR_TITLE.search(title):
        title = first_line_title("\n".join(pages[0])) if pages else ""
    return collector.done(title, num_pages)


def _opened(data: bytes) -> PdfReader:
    """Returns a file's reader. One that is encrypted only to forbid changes opens with the empty password, as in any viewer.

    Raises BadDocument where it wants another one, or is encrypted in a way of its own.
    """
    try:
        reader = PdfReader(io.BytesIO(data))
        is_open = not reader.is_encrypted or bool(reader.decrypt(""))
    except (DependencyError, NotImplementedError):
        raise BadDocument("is encrypted in a way that cannot be read here; save it without encryption and upload it again.") from None
    if not is_open:
        raise BadDocument("is encrypted with a password; save it without one and upload it again.")
    return reader


def _page_texts(reader: PdfReader, limits: ParseLimits) -> list[list[str]]:
    pages, num_chars = [], 0
    for page in reader.pages:
        text = page.extract_text()
        num_chars += len(text)
        if num_chars > 2 * limits.num_chars:
            raise BadDocument(f"has more than {limits.num_chars:,} characters of text; split it into smaller files.")
        pages.append([line.strip() for line in text.split("\n")])
    return pages


def _without_heads(pages: Sequence[list[str]]) -> list[list[str]]:
    """Returns the pages' lines less a first and last line that most pages share, numbers aside."""
    if len(pages) < _MIN_PAGES_FOR_HEADS:
        return list(pages)
    pages = [_trimmed(lines) for lines in pages]
    for place in (0, -1):
        seen = Counter(_DIGITS.sub("#", lines[place]) for lines in pages if lines)
        common = {line for line, count in seen.items() if count * 2 > len(pages)}
        pages = [
            [line for i, line in enumerate(lines) if i != place % len(lines) or _DIGITS.sub("#", line) not in common] if lines else lines
            for lines in pages
        ]
    return pages


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Returns lines without blank ones at either end."""
    kept = [i for i, line in enumerate(lines) if line]
    return list(lines[kept[0] : kept[-1] + 1]) if kept else []


def _join_lines(lines: Sequence[str]) -> str:
    """Returns lines as paragraphs: words parted at a line's end are joined, blank lines kept."""
    text = _HYPHEN_BREAK.sub("", "\n".join(lines))
    return "\n\n".join(" ".join(part.split("\n")) for part in re.split(r"\n\s*\n", text))
