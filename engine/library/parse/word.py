"""Word files: paragraphs and table rows under their headings. The archive is measured before anything in it is read."""

import io
import posixpath
import zipfile
import zlib

import docx
from docx.document import Document
from docx.opc.exceptions import OpcError
from docx.oxml.parser import parse_xml
from docx.text.paragraph import Paragraph
from lxml.etree import LxmlError

from engine.errors import BadDocument
from engine.library.parse.base import Collector, ParsedText, ParseLimits, one_line
from engine.library.parse.word_text import TABLE, blocks, paragraph_text, table_rows

_BLOCK_BYTES = 2**18
_DAMAGED = "is a damaged Word file; open it in a word processor and save it anew."


def parse(data: bytes, limits: ParseLimits) -> ParsedText:
    """Returns the text of a .docx file. Raises BadDocument."""
    _check_archive(data, limits)
    try:
        document = docx.Document(io.BytesIO(data))
        collector = Collector(limits)
        title = _add_body(document, collector)
        named = document.core_properties.title
    except (OpcError, LxmlError, zipfile.BadZipFile, zlib.error, KeyError, ValueError):
        raise BadDocument(_DAMAGED) from None
    return collector.done(named or title)


def _add_body(document: Document, collector: Collector) -> str:
    """Adds all texts in order, footnotes behind them, and returns the first title or heading."""
    heading = first = ""
    for block in blocks(document.element.body):
        if block.tag == TABLE:
            for row in table_rows(block):
                collector.add(row, heading)
            continue
        style, text = Paragraph(block, document).style, paragraph_text(block)
        if style is not None and (style.name or "").startswith(("Heading", "Title")) and text.strip():
            heading = one_line(text)
            first = first or heading
        else:
            collector.add(text, heading)
    for relation in document.part.rels.values():
        if relation.reltype.endswith("/footnotes") and not relation.is_external:
            for note in parse_xml(relation.target_part.blob):
                collector.add(" ".join(filter(None, map(paragraph_text, blocks(note)))), heading)
    return first


def _check_archive(data: bytes, limits: ParseLimits) -> None:
    """Unpacks every member in small pieces, keeping none. Raises BadDocument on too many bytes, odd names, entities, encryption."""
    left = limits.unpacked_bytes
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                _check_name(member.filename)
                if member.flag_bits & 0x1:
                    raise BadDocument("is encrypted; save it without a password and upload it again.")
                with archive.open(member) as file:
                    is_markup, before = member.filename.endswith((".xml", ".rels")), b""
                    while block := file.read(_BLOCK_BYTES):
                        left -= len(block)
                        if left < 0:
                            raise BadDocument(
                                f"unpacks to more than {limits.unpacked_bytes // 2**20} MiB; remove pictures and other attachments from it."
                            )
                        # Word writes no document type, so one here is an attempt at entities.
                        if is_markup and b"<!" in (joined := before + block) and (b"<!DOCTYPE" in joined or b"<!ENTITY" in joined):
                            raise BadDocument("defines XML entities, which no word processor does; save it anew in one.")
                        before = block[-16:]
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError, ValueError):
        raise BadDocument(_DAMAGED) from None


def _check_name(name: str) -> None:
    path = posixpath.normpath(name.replace("\\", "/"))
    if path.startswith(("/", "..")) or ":" in path.split("/")[0]:
        raise BadDocument("has a member with a path outside the archive; save it anew in a word processor.")
