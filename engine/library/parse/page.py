"""Web pages: the text that a reader sees, under its headings. Nothing is fetched and nothing is run."""

import re

from lxml import etree

from engine.errors import BadDocument
from engine.library.parse.base import Collector, ParsedText, ParseLimits, one_line
from engine.library.parse.kinds import decode_page

_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_UNSEEN = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "head", "select", "button", "textarea"}
_BLOCKS = {
    *(
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
    ),
    *("footer", "form", "header", "hr", "html", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot"),
    *("thead", "tr", "ul", *HEADINGS),
}


def parse(data: bytes, limits: ParseLimits) -> ParsedText:
    """Returns the text of an .html file. Raises BadDocument."""
    collector = Collector(limits)
    named = add_page(decode_page(data), collector)
    return collector.done(named or next((passage.heading for passage in collector.passages if passage.heading), ""))


def add_page(text: str, collector: Collector, heading: str = "") -> str:
    """Adds a page's texts block by block, each under the heading before it, and returns the page's own title."""
    root = _tree(text)
    if root is None:
        return ""
    parts: list[str] = []
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = element.tag
        if event == "start":
            if name in _UNSEEN or "hidden" in element.attrib or _NOT_SHOWN.search(element.get("style") or ""):
                walk.skip_subtree()
                continue
            if name in _BLOCKS:
                collector.add(_taken(parts), heading)
            elif name in ("td", "th") and any(part.strip() for part in parts):
                parts.append(" | ")
            parts.append(element.text or "")
        else:
            if name in HEADINGS:
                heading = one_line(_taken(parts)) or heading
            elif name in _BLOCKS:
                collector.add(_taken(parts), heading)
            elif name == "br":
                parts.append(" ")
            parts.append(element.tail or "")
    collector.add(_taken(parts), heading)
    return root.findtext(".//title") or ""


def _taken(parts: list[str]) -> str:
    """Returns the collected text on one line and empties the list."""
    text = " ".join("".join(parts).split())
    parts.clear()
    return text


def _tree(text: str) -> etree._Element | None:
    """Returns the page as a tree, however broken its tags are; None where it has none. Raises BadDocument, MemoryError."""
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        root = None
    # What libxml2 gives up on it leaves out of the tree without raising.
    given_up = {entry.type_name for entry in parser.error_log} & {"ERR_RESOURCE_LIMIT", "ERR_NO_MEMORY"}
    if "ERR_NO_MEMORY" in given_up:
        raise MemoryError
    if given_up:
        raise BadDocument("is nested too deeply to be read; save it in a plainer form.")
    return root
