"""Plain text: paragraphs are parted by blank lines."""

from engine.library.parse.base import Collector, ParsedText, ParseLimits, first_line_title
from engine.library.parse.kinds import decode


def parse(data: bytes, limits: ParseLimits) -> ParsedText:
    """Returns the text of a .txt file. Raises BadDocument."""
    text = decode(data)
    collector = Collector(limits)
    collector.add(text)
    first = collector.passages[0].text if collector.passages else ""
    # A line that is all there is names nothing.
    return collector.done(first_line_title(f"{first}\n…" if len(collector.passages) > 1 else first))
