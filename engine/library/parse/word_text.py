"""Word's markup: what a reader sees of a paragraph or a table, wherever the word processor has wrapped it.

Forms and templates keep their text in content controls, reviewed documents in tracked insertions, flyers in text boxes.
"""

from collections.abc import Iterator

from docx.oxml.ns import qn
from lxml import etree

PARAGRAPH, TABLE, ROW, CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_TEXT, _BOX = qn("w:t"), qn("w:txbxContent")
_BREAKS = {qn("w:tab"): " ", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
# What stands around blocks, rows, cells and runs without being one.
_AROUND = {qn(f"w:{name}") for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag")}
# Properties, what was deleted or moved away, and the copy of a drawing for older programs.
_UNSEEN = {
    *(qn(f"w:{name}") for name in ("pPr", "rPr", "sdtPr", "del", "moveFrom")),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}


def blocks(parent: etree._Element) -> Iterator[etree._Element]:
    """Yields the paragraphs and tables of a body, a cell or a note in order; behind a paragraph what its text boxes hold."""
    for block in _inside(parent, {PARAGRAPH, TABLE}):
        yield block
        if block.tag == PARAGRAPH:
            for box in _boxes(block):
                yield from blocks(box)


def paragraph_text(paragraph: etree._Element) -> str:
    """Returns a paragraph's own text, without that of its text boxes."""
    parts = []
    walk = etree.iterwalk(paragraph, events=("start",))
    for _, element in walk:
        if element.tag in _UNSEEN or element.tag == _BOX:
            walk.skip_subtree()
        elif element.tag == _TEXT:
            parts.append(element.text or "")
        else:
            parts.append(_BREAKS.get(element.tag, ""))
    return "".join(parts)


def table_rows(table: etree._Element) -> Iterator[str]:
    """Yields a table's rows, cells parted by bars; a cell that spans several rows is read in each, so that a row can stand alone."""
    above: dict[int, str] = {}
    for row in _inside(table, {ROW}):
        column, texts = 0, []
        for cell in _inside(row, {CELL}):
            text = above.get(column, "") if _continues(cell) else " ".join(_cell_text(cell).split())
            above[column] = text
            texts.append(text)
            column += _span(cell)
        yield " | ".join(filter(None, texts))


def _cell_text(cell: etree._Element) -> str:
    return " ".join(" ".join(table_rows(block)) if block.tag == TABLE else paragraph_text(block) for block in blocks(cell))


def _inside(parent: etree._Element, tags: set[str]) -> Iterator[etree._Element]:
    """Yields the children of these tags, those in wrappers among them."""
    for child in parent:
        if child.tag in tags:
            yield child
        elif child.tag in _AROUND:
            yield from _inside(child, tags)


def _boxes(paragraph: etree._Element) -> Iterator[etree._Element]:
    walk = etree.iterwalk(paragraph, events=("start",))
    for _, element in walk:
        if element.tag in _UNSEEN:
            walk.skip_subtree()
        elif element.tag == _BOX:
            yield element
            walk.skip_subtree()


def _continues(cell: etree._Element) -> bool:
    """Returns whether a cell belongs to the one above it."""
    merge = cell.find(f"{qn('w:tcPr')}/{qn('w:vMerge')}")
    return merge is not None and merge.get(qn("w:val"), "continue") == "continue"


def _span(cell: etree._Element) -> int:
    span = cell.find(f"{qn('w:tcPr')}/{qn('w:gridSpan')}")
    num = "" if span is None else span.get(qn("w:val"), "")
    return int(num) if num.isdecimal() else 1
