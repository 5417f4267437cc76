"""Markdown: paragraphs, list items, tables and code under their headings, without the marks."""

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from engine.library.parse.base import Collector, ParsedText, ParseLimits, one_line
from engine.library.parse.kinds import decode
from engine.library.parse.page import add_page

# A footnote would be taken for the address of a link, which no reader sees.
_FOOTNOTE = re.compile(r"^ {0,3}\[\^([^\]\s]{1,80})\]:[ \t]*", re.MULTILINE)


def parse(data: bytes, limits: ParseLimits) -> ParsedText:
    """Returns the text of an .md file (CommonMark and tables). Raises BadDocument."""
    text = _FOOTNOTE.sub(r"\\[\1] ", _without_front_matter(decode(data)))
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    collector = Collector(limits)
    heading, title, cells = "", "", list[str]()
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "tr_close":
            collector.add(" | ".join(cells), heading)
            cells = []
        elif token.type in ("fence", "code_block"):
            collector.add(token.content, heading)
        elif token.type == "html_block":
            add_page(token.content, collector, heading)
        elif token.type == "inline":
            text = _inline_text(token)
            if before is not None and before.type == "heading_open":
                heading = one_line(text)
                title = title or heading
            elif before is not None and before.type in ("td_open", "th_open"):
                cells.append(text)
            else:
                collector.add(text, heading)
    return collector.done(title)


def _inline_text(token: Token) -> str:
    """Returns what a reader sees of a line: link texts without addresses, pictures by their descriptions."""
    parts = []
    for child in token.children or ():
        if child.type in ("text", "code_inline", "image"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)


def _without_front_matter(text: str) -> str:
    """Returns the text without a block of settings between two lines of three dashes at its start."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].strip() != "---":
        return text
    end = next((i for i, line in enumerate(lines[1:60], 1) if line.strip() in ("---", "...")), None)
    return text if end is None else "\n".join(lines[end + 1 :])
