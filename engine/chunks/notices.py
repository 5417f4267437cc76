"""Sentences for the user about what the store did on its own; each is handed out once."""

from collections import deque
from threading import Lock

_MAX_PENDING = 64


class Notices:
    """Notices that wait to be drained; the newest are kept where nobody drains them. Safe to call from many threads."""

    def __init__(self) -> None:
        self._pending: deque[str] = deque(maxlen=_MAX_PENDING)
        self._states: set[str] = set()
        self._lock = Lock()

    def add(self, text: str) -> None:
        """Files a notice of an event."""
        with self._lock:
            self._pending.append(text)

    def add_state(self, text: str) -> None:
        """Files a notice of a lasting state, unless it was filed before."""
        with self._lock:
            if text not in self._states:
                self._states.add(text)
                self._pending.append(text)

    def forget_states(self) -> None:
        """Makes every lasting state news again."""
        with self._lock:
            self._states.clear()

    def drain(self) -> tuple[str, ...]:
        """Returns the waiting notices, oldest first, and forgets them."""
        with self._lock:
            drained = tuple(self._pending)
            self._pending.clear()
        return drained
