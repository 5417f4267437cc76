"""More than two hundred broken and hostile files: each is a text or one plain sentence, within its time and memory."""

import io
import json
import os
import random
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from library_samples import lock_pdf, make_docx, make_pdf, make_text, open_library, repacked, valid_files

from engine.errors import BadDocument, EngineError
from engine.library.limits import MIB, LibraryLimits
from engine.library.parse.base import ParsedText, ParseLimits
from engine.library.parse.child import Answer
from engine.library.parse.kinds import kind_of
from engine.library.parse.sandbox import ROOT, _read_answer

NUM_PER_KIND = 34
LIMITS = LibraryLimits(parse_time_s=1, parse_memory_bytes=600 * MIB, unpacked_bytes=10 * MIB, num_chars=300_000)
WORD = make_docx([("Title", "Merrow Point"), ("Normal", make_text(1, 20))], rows=[["a", "b"], ["c", "d"]])
SOURCES = {
    **{name.rpartition(".")[2]: data for name, data in valid_files().items()},
    "docx": WORD,
    "pdf": make_pdf([make_text(i, 10).split(". ") for i in range(3)], title="Handbook", compress=True),
}


def mutate(kind: str, data: bytes, draw: random.Random) -> bytes:
    """Returns a file with some bytes changed, lost, doubled or moved; of a Word file inside one of its members."""
    if kind == "docx" and draw.random() < 0.7:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            name = draw.choice([name for name in archive.namelist() if name.endswith((".xml", ".rels"))])
            return repacked(data, {name: mutate("xml", archive.read(name), draw)})
    changed = bytearray(data)
    for _ in range(draw.choice([1, 3, 20])):
        at, length = draw.randrange(len(changed)), draw.choice([1, 4, 60])
        match draw.randrange(6):
            case 0:
                changed[at] = draw.randrange(256)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length] * draw.choice([1, 50])
            case 3:
                changed[at : at + length] = bytes(length)
            case 4:
                changed[at:at] = draw.choice(
                    [b"<<", b">>", b"<a", b"&x;", b'"', b"9999999999", b"\xff\xfe", b"/Kids [1 0 R]", b"]]>", b"\r"]
                )
            case 5:
                del changed[at:]
        changed = changed or bytearray(b"x")
    return bytes(changed)


def crafted() -> dict[str, bytes]:
    """Returns files that were made to hang, to overflow or to reach outside."""
    laughs = b'<!DOCTYPE a [<!ENTITY a "lol">' + b"".join(
        f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "&a;" * 10}">'.encode() for i in range(9)
    )
    page = b"<< /Type /Page /Parent 2 0 R >>"
    return {
        "cycle.pdf": make_pdf([["Lamp."]]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
        "many.pdf": make_pdf([["Lamp."]]).replace(b"/Count 1", b"/Count 99999999"),
        "deep.pdf": make_pdf([["Lamp."]]).replace(b"/Root 1 0 R", b"/Root 1 0 R /X " + b"[" * 20_000),
        "longstream.pdf": make_pdf([["Lamp."]]).replace(b"/Length ", b"/Length 99999999"),
        "noobjects.pdf": b"%PDF-1.7\n" + page * 1000 + b"\nstartxref\n0\n%%EOF",
        "xrefloop.pdf": make_pdf([["Lamp."]]).replace(b"/Root 1 0 R", b"/Root 1 0 R /Prev 9"),
        "locked.pdf": lock_pdf(make_pdf([["Lamp."]]), "hush"),
        "nokey.pdf": make_pdf([["Lamp."]], trailer="/Encrypt 99 0 R"),
        "oddkey.pdf": lock_pdf(make_pdf([["Lamp."]]), "").replace(b"/Length 128", b"/Length 999"),
        "noid.pdf": lock_pdf(make_pdf([["Lamp."]]), "").replace(b"/ID", b"/XX"),
        "nouser.pdf": lock_pdf(make_pdf([["Lamp."]]), "").replace(b"/U ", b"/Y "),
        "open.csv": b'a,b\n"' + b"x\n" * 200_000,
        "wide.csv": b",".join(b"c" for _ in range(100_000)) + b"\n" + b"1," * 100_000,
        "quotes.csv": b'"' * 100_001 + b"\n",
        "brackets.md": b"[" * 60_000,
        "quotes.md": b">" * 20_000 + b"x",
        "stars.md": b"*a_" * 40_000,
        "lists.md": b"".join(b" " * (i % 400) + b"- a\n" for i in range(20_000)),
        "html.md": b"<div " * 20_000,
        "deep.html": b"<html>" + b"<b><p>" * 50_000 + b"x",
        "attrs.html": b"<html><p " + b'a="b" ' * 100_000 + b">x",
        "open.html": b"<html>" + b"<!--" * 60_000,
        "entity.html": b"<html>&#99999999999;&#0;&amp" + b"&" * 60_000,
        "script.html": b"<html><script>" + b"while(1);" * 1000,
        "laughs.docx": repacked(WORD, {"word/document.xml": laughs + b"]><a>&a8;</a>"}),
        "bomb.docx": repacked(WORD, {"word/document.xml": b"<w>" + b" " * (40 * MIB)}),
        "manyfiles.docx": repacked(WORD, {f"word/{i}.xml": b"<a/>" for i in range(3000)}),
        "deepxml.docx": repacked(WORD, {"word/document.xml": b"<a>" * 100_000}),
        "link.docx": repacked(WORD, {"word/_rels/document.xml.rels": b'<Relationships Target="file:///etc/passwd"/>'}),
        "store.docx": repacked(WORD, {}, zipfile.ZIP_STORED)[:-30],
        "marks.txt": "é\u0301".encode() * 100_000,
        "lines.txt": b"\n" * 300_000 + b"x",
        "ends.txt": b". " * 150_000,
    }


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, ParsedText | BadDocument]:
    """What became of every file, by name; those that are refused by their first bytes never reach a parser."""
    folder, draw = tmp_path_factory.mktemp("malformed"), random.Random(20261130)
    files = {f"{i:03d}.{kind}": mutate(kind, data, draw) for kind, data in SOURCES.items() for i in range(NUM_PER_KIND)} | crafted()
    found: dict[str, ParsedText | BadDocument] = {}
    for name, data in files.items():
        try:
            kind_of(name, data)
            (folder / name).write_bytes(data)
        except BadDocument as refused:
            found[name] = refused
    limits = ParseLimits(
        LIMITS.num_pages, LIMITS.num_rows, LIMITS.num_chars, LIMITS.unpacked_bytes, LIMITS.parse_time_s, LIMITS.parse_memory_bytes
    )
    command = [sys.executable, str(Path(__file__).with_name("parse_many.py")), str(folder), msgspec.json.encode(limits).decode()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=300)
    for line in map(json.loads, told.stdout.splitlines()):
        try:
            found[line["name"]] = _read_answer(line["name"].rpartition(".")[2], line["returncode"], line["out"].encode(), LIMITS)
        except BadDocument as refused:
            found[line["name"]] = refused
    assert set(found) == set(files) and len(files) > 200
    return found


def test_every_file_is_a_text_or_one_sentence(outcomes):
    for name, outcome in outcomes.items():
        if isinstance(outcome, ParsedText):
            assert outcome.passages and sum(len(p.text) for p in outcome.passages) <= LIMITS.num_chars, name
            assert all(p.text.strip() and "\0" not in p.text for p in outcome.passages), name
            json.dumps(msgspec.to_builtins(outcome)).encode()
        else:
            told = str(outcome)
            assert told.endswith(".") and "\n" not in told and 20 < len(told) < 250 and "Traceback" not in told, (name, told)


def test_both_ends_occur_for_every_kind(outcomes):
    for kind in SOURCES:
        numbered = [outcome for name, outcome in outcomes.items() if name.endswith(f".{kind}")]
        assert any(isinstance(outcome, ParsedText) for outcome in numbered), kind
        assert any(isinstance(outcome, BadDocument) for outcome in numbered), kind


@pytest.mark.parametrize("name", ["laughs.docx", "bomb.docx", "link.docx"])
def test_hostile_archives_are_refused(outcomes, name):
    assert isinstance(outcomes[name], BadDocument)


def test_nothing_of_a_refused_file_stays(tmp_path):
    library = open_library(tmp_path / "data", replace(LIMITS, parse_time_s=60))
    before = {path for path in tmp_path.rglob("*")}
    hostile = crafted()
    for name in ("laughs.docx", "cycle.pdf", "bomb.docx"):
        with pytest.raises(EngineError):
            library.add("visitor-1", "Lamps", name, hostile[name])
    assert {path for path in tmp_path.rglob("*")} == before
    assert not [info for info in library.libraries("visitor-1") if not info.is_shared]
    assert library.add("visitor-1", "Lamps", "note.txt", b"The next one works.").num_chunks == 1


def test_answers_of_the_process_have_one_form():
    assert msgspec.json.decode(msgspec.json.encode(Answer(refused="is odd."))) == {"text": None, "refused": "is odd."}
