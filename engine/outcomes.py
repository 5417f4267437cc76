"""Tells whoever counts what became of requests: runs, turns of a chat, errors. Knows nothing of what is counted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.errors import EngineError

Listener = Callable[[object], None]


class Outcomes:
    """Passes finished values (a Run, a ChatTurn, a CacheRun) and EngineErrors on to its listeners, in the worker's thread."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def listen(self, listener: Listener) -> None:
        """Adds a listener. It must be quick and must not raise."""
        self._listeners = (*self._listeners, listener)

    def tell(self, outcome: object) -> None:
        """Passes one value on."""
        for listener in self._listeners:
            listener(outcome)

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """Passes an EngineError of the body on, and lets it go its way."""
        try:
            yield
        except EngineError as error:
            self.tell(error)
            raise
