"""Turns the answer so far into pieces that never change afterwards."""

from collections.abc import Callable

UNFINISHED = "\ufffd"


class Pieces:
    """Passes on what an answer has gained. A character whose bytes are not all there yet waits for the rest of them."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit, self._sent = emit, ""

    def grow(self, text: str) -> None:
        """Takes the whole answer so far."""
        self._send(text.rstrip(UNFINISHED))

    def end(self, text: str) -> None:
        """Takes the finished answer, as it is."""
        self._send(text)

    def _send(self, text: str) -> None:
        if len(text) > len(self._sent) and text.startswith(self._sent):
            self._emit(text[len(self._sent) :])
            self._sent = text
