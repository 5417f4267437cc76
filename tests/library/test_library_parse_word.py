"""Word files: text is read wherever it stands, in its order."""

import io
import zipfile

import pytest
from library_samples import make_docx, repacked
from parsing import parse, texts


def test_a_word_file_has_headings_and_tables():
    data = make_docx(
        [("Title", "Merrow Point"), ("Normal", "It was lit in 1871."), ("Heading 1", "Piers"), ("List Bullet", "The north pier.")],
        title="The Handbook",
        rows=[["pier", "depth"], ["north", "4 m"]],
    )
    parsed = parse("docx", data)
    assert parsed.title == "The Handbook"
    assert [(p.heading, p.text) for p in parsed.passages] == [
        ("Merrow Point", "It was lit in 1871."),
        ("Piers", "The north pier."),
        ("Piers", "pier | depth"),
        ("Piers", "north | 4 m"),
    ]


WORD = make_docx([("Normal", "The lamp was lit.")])
RUN = "<w:r><w:t>{}</w:t></w:r>"
LINE = f"<w:p>{RUN}</w:p>"
BOX = f"<w:txbxContent>{LINE.format('In a box.')}</w:txbxContent>"
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
WRAPPED = {
    "a content control": (f"<w:sdt><w:sdtPr/><w:sdtContent>{LINE.format('A form.')}</w:sdtContent></w:sdt>", ["A form."]),
    "a control in a line": (f"<w:p><w:sdt><w:sdtContent>{RUN.format('A field.')}</w:sdtContent></w:sdt></w:p>", ["A field."]),
    "a reviewed line": (
        f"<w:p>{RUN.format('It was ')}<w:ins>{RUN.format('lit')}</w:ins><w:del><w:r><w:delText>put out</w:delText></w:r></w:del></w:p>",
        ["It was lit"],
    ),
    "a text box, drawn twice": (
        f"<w:p>{RUN.format('Beside.')}<w:r><mc:AlternateContent {MC}><mc:Choice><w:drawing>{BOX}</w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict>{BOX}</w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>",
        ["Beside.", "In a box."],
    ),
    "a table in a table": (
        f"<w:tbl><w:tr><w:tc>{LINE.format('Outer')}<w:tbl><w:tr><w:tc>{LINE.format('inner')}</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>",
        ["Outer inner"],
    ),
    "equal cells": (f"<w:tbl><w:tr>{f'<w:tc>{LINE.format(4)}</w:tc>' * 3}</w:tr></w:tbl>", ["4 | 4 | 4"]),
    "a cell over two rows": (
        f"<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr>{LINE.format('north')}</w:tc>"
        f"<w:tc>{LINE.format('4 m')}</w:tc></w:tr>"
        f"<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc><w:tc>{LINE.format('5 m')}</w:tc></w:tr></w:tbl>",
        ["north | 4 m", "north | 5 m"],
    ),
    "tab stops and breaks": (
        f"<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>{RUN.format('a')}<w:r><w:tab/></w:r>{RUN.format('b')}<w:r><w:br/></w:r>{RUN.format('c')}</w:p>",
        ["a b\nc"],
    ),
}


@pytest.mark.parametrize("markup, shown", WRAPPED.values(), ids=WRAPPED)
def test_a_word_text_is_read_wherever_it_is_wrapped(markup, shown):
    with zipfile.ZipFile(io.BytesIO(WORD)) as archive:
        before, body, after = archive.read("word/document.xml").decode().partition("<w:body>")
    assert texts(parse("docx", repacked(WORD, {"word/document.xml": (before + body + markup + after).encode()}))) == [
        *shown,
        "The lamp was lit.",
    ]


def test_a_word_files_footnotes_follow_its_text():
    notes = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    with zipfile.ZipFile(io.BytesIO(WORD)) as archive:
        rels = archive.read("word/_rels/document.xml.rels").decode()
        kinds = archive.read("[Content_Types].xml").decode()
    link = f'<Relationship Id="rId99" Type="{notes}" Target="footnotes.xml"/></Relationships>'
    kind = '<Override PartName="/word/footnotes.xml" ContentType="application/xml"/></Types>'
    data = repacked(
        WORD,
        {
            "word/_rels/document.xml.rels": rels.replace("</Relationships>", link).encode(),
            "[Content_Types].xml": kinds.replace("</Types>", kind).encode(),
            "word/footnotes.xml": f"<w:footnotes {space}><w:footnote>{LINE.format('By Ada Quill.')}</w:footnote></w:footnotes>".encode(),
        },
    )
    assert texts(parse("docx", data)) == ["The lamp was lit.", "By Ada Quill."]
