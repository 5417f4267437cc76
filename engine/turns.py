"""One engine, many visitors: requests run one at a time, in the order they came, and know their place."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.errors import Cancelled, QueueFull, TimedOut


class Turns:
    """A fair queue of one slot, so that no visitor's run slows the measurement of another.

    Args:
        max_waiting: how many may wait for the slot; 0 for any number.
    """

    def __init__(self, max_waiting: int = 0) -> None:
        self._changed = threading.Condition()
        self._waiting: list[object] = []
        self._max_waiting = max_waiting

    @property
    def num_waiting(self) -> int:
        """Returns how many requests wait, the one that holds the slot left out."""
        return max(0, len(self._waiting) - 1)

    @contextmanager
    def turn(self, on_wait: Callable[[int], None], cancelled: Callable[[], bool]) -> Iterator[None]:
        """Holds the slot for the body.

        Args:
            on_wait: called with the number of requests ahead, whenever it changes while it is above 0.

        Raises Cancelled when the owner gives up while waiting, QueueFull where too many wait already.
        """
        ticket, told = object(), 0
        with self._changed:
            if 0 < self._max_waiting < len(self._waiting):
                raise QueueFull(f"{self.num_waiting} requests wait already, which is all the queue takes; try again in a minute.")
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


class Allowance:
    """Engine time of a request that takes several turns, as a batch of replays does: waiting between them is not counted.

    Args:
        limit_s: of all turns together; 0 for any.
        message: of TimedOut once that has passed.
    """

    def __init__(self, limit_s: float, cancelled: Callable[[], bool], message: str) -> None:
        self._limit_s, self._cancelled, self._message = limit_s, cancelled, message
        self._used_s = 0.0

    @contextmanager
    def used(self) -> Iterator[Callable[[], bool]]:
        """Counts the body's time; yields what says whether to stop, which raises TimedOut once the time is used up."""
        begun = time.monotonic()

        def late() -> bool:
            if self._limit_s and self._used_s + time.monotonic() - begun > self._limit_s:
                raise TimedOut(self._message)
            return self._cancelled()

        try:
            yield late
        finally:
            self._used_s += time.monotonic() - begun


def within(limit_s: float, cancelled: Callable[[], bool]) -> Callable[[], bool]:
    """Returns `cancelled` with a deadline that begins now; 0 for none. The result raises TimedOut once it has passed."""
    if not limit_s:
        return cancelled
    deadline = time.monotonic() + limit_s

    def late() -> bool:
        if time.monotonic() > deadline:
            raise TimedOut(f"The request took more than {limit_s:g} s of the engine's time; ask for fewer tokens, chunks or methods.")
        return cancelled()

    return late
