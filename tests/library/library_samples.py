"""Valid files of every kind, made in memory, and libraries to put them into."""

import io
import random
import zipfile
import zlib
from pathlib import Path

import docx
from pypdf import PdfReader, PdfWriter

from engine.library.library import Library
from engine.library.limits import LibraryLimits
from engine.library.tools import LibraryTools

TEXT = """The Lamp of Merrow Point

The lamp of Merrow Point was lit in 1871 by Ada Quill. She kept it for forty years.
The tower has 212 steps.

Ferry times are 7, 9 and 12. No ferry runs on the feast of St. Orrin.
"""
MARKDOWN = """---
author: nobody
---
# Merrow Point

The lamp was lit in **1871** by [Ada Quill](https://example.org/ada).

## Ferries

- The first ferry leaves at 7.
- No ferry runs on the feast of St. Orrin.

| pier | depth |
|------|-------|
| north | 4 m |

```
lamp --on
```
<div>Gulls <b>nest</b> here.<script>alert(1)</script></div>
"""
TABLE = 'name;year;place\nAda Quill;1871;Merrow Point\nOrrin;1760;Vell\n\n"Tamsin; the elder";1902;Vell\n'
PAGE = """<!DOCTYPE html><html><head><title>Merrow &amp; Point</title><style>p{}</style></head><body>
<h1>The lamp</h1><p>It was lit in 1871<br>by <em>Ada</em> Quill.</p><script>document.write("no")</script>
<h2>Ferries</h2><ul><li>The first leaves at 7.</li></ul><table><tr><td>north</td><td>4 m</td></tr></table><p hidden>unseen</p>
</body></html>"""
_WORDS = (
    *("lamp", "tower", "ferry", "harbour", "gull", "storm", "keeper", "stair", "window", "night"),
    *("signal", "brass", "oil", "ledger", "rope", "anchor", "tide", "rock", "chapel", "road"),
)


def make_text(seed: int, num_sentences: int = 40) -> str:
    """Returns sentences of made-up words, the same for the same seed."""
    draw = random.Random(seed)
    sentences = []
    for number in range(num_sentences):
        words = [draw.choice(_WORDS) for _ in range(draw.randint(5, 14))]
        sentences.append(f"Note {seed}-{number} says that the {' '.join(words)} {draw.randint(100, 9999)}.")
    return "\n\n".join(" ".join(sentences[i : i + 5]) for i in range(0, num_sentences, 5))


def make_pdf(pages: list[list[str]], title: str = "", trailer: str = "", compress: bool = False) -> bytes:
    """Returns a PDF whose pages show the given lines (Latin letters only).

    Args:
        trailer: what else stands in the trailer, as "/Encrypt 9 0 R".
    """
    num = len(pages)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {num} /Kids [{' '.join(f'{4 + 2 * i} 0 R' for i in range(num))}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, lines in enumerate(pages):
        shown = "".join(f"({_escaped(line)}) Tj 0 -14 Td\n" for line in lines)
        stream = f"BT /F1 11 Tf 50 780 Td\n{shown}ET".encode("latin-1")
        kind = b""
        if compress:
            stream, kind = zlib.compress(stream), b"/Filter /FlateDecode "
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * i} 0 R"
            f" /Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< " + kind + f"/Length {len(stream)} >>\nstream\n".encode() + stream + b"\nendstream",
        ]
    objects.append(f"<< /Title ({_escaped(title)}) >>".encode("latin-1"))
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for i, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{i} 0 obj\n".encode() + body + b"\nendobj\n"
    xref = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    info = f"/Info {len(objects)} 0 R" if title else ""
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {info} {trailer} >>\nstartxref\n{xref}\n%%EOF\n".encode()
    return bytes(out)


def lock_pdf(data: bytes, password: str, algorithm: str = "RC4-128") -> bytes:
    """Returns a PDF encrypted for readers who know the password, which may be empty; its owner's is another."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(password, "the owner's", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def make_docx(paragraphs: list[tuple[str, str]], title: str = "", rows: list[list[str]] | None = None) -> bytes:
    """Returns a Word file of (style, text) paragraphs, with a table behind them."""
    document = docx.Document()
    document.core_properties.title = title
    for style, text in paragraphs:
        document.add_paragraph(text, style=style)
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def repacked(data: bytes, changes: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Returns a zip archive with some members replaced or added."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", compression) as new:
        for name in old.namelist():
            if name not in changes:
                new.writestr(name, old.read(name))
        for name, body in changes.items():
            new.writestr(name, body)
    return out.getvalue()


def valid_files() -> dict[str, bytes]:
    """Returns one file of each kind, by name."""
    return {
        "note.txt": TEXT.encode(),
        "note.md": MARKDOWN.encode(),
        "note.pdf": make_pdf(
            [["The lamp was lit in 1871 by Ada Quill.", "She kept it for forty years."], ["Ferry times are 7, 9 and 12."]]
        ),
        "note.csv": TABLE.encode(),
        "note.html": PAGE.encode(),
        "note.docx": make_docx([("Title", "Merrow Point"), ("Normal", "The lamp was lit in 1871 by Ada Quill.")], rows=[["pier", "4 m"]]),
    }


def open_library(folder: Path, limits: LibraryLimits | None = None, **tools: object) -> Library:
    """Returns a library that counts words as tokens."""
    return Library.open(folder, limits, LibraryTools(**{"count_tokens": lambda text: len(text.split()), **tools}))


def _escaped(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
