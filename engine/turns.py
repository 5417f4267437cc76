"""One engine, many visitors: requests run one at a time, in the order they came, and know their place."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.errors import Cancelled


class Turns:
    """A fair queue of one slot, so that no visitor's run slows the measurement of another."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[object] = []

    @contextmanager
    def turn(self, on_wait: Callable[[int], None], cancelled: Callable[[], bool]) -> Iterator[None]:
        """Holds the slot for the body.

        Args:
            on_wait: called with the number of requests ahead, whenever it changes while it is above 0.

        Raises Cancelled when the owner gives up while waiting.
        """
        ticket, told = object(), 0
        with self._changed:
            self._waiting.append(ticket)
        try:
            while True:
                with self._changed:
                    ahead = self._waiting.index(ticket)
                    if ahead == 0:
                        break
                    if ahead == told:
                        self._changed.wait(timeout=0.2)
                if cancelled():
                    raise Cancelled("Stopped while waiting.")
                if ahead != told:
                    told = ahead
                    on_wait(ahead)
            yield
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self._changed.notify_all()
