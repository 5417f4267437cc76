"""Ends an answer at the first of several texts, though they may come in pieces."""

from collections.abc import Sequence

from engine.chat.types import first_stop


class StopFilter:
    """Passes text on up to the first stop text; what may be the beginning of one is held back until it is clear."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._held, self.hit = tuple(stop for stop in stops if stop), "", False

    def feed(self, text: str) -> str:
        """Returns what may be shown of the text held back and this piece; "" for all that follows a stop."""
        if self.hit:
            return ""
        text = self._held + text
        at = first_stop(text, self._stops)
        if at is not None:
            self.hit, self._held = True, ""
            # The one that was complete first: so it does not matter in which pieces the text came.
            return text[:at]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def rest(self) -> str:
        """Returns what was held back, once the answer has ended."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Returns the length of the longest end of `text` with which `stop` begins."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
