"""Conversations of a process: turns wait for the engine like all requests, tell how they go on, and are settled when they are told.

Light: torch comes with the runtime.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from engine.chat.stream import Pieces
from engine.chat.types import ChatRequest, ChatStatus, ChatToken, ChatTurn, PrefixStats
from engine.errors import EngineError
from engine.outcomes import Outcomes
from engine.turns import Turns, within

if TYPE_CHECKING:
    from engine.chat.engine import ChatEngine
    from engine.runtime import Runtime

logger = logging.getLogger(__name__)
Event = ChatStatus | ChatToken | ChatTurn
Emit = Callable[[Event | None], None]


class Chats:
    """Everything a process knows of conversations. Thread-safe.

    Args:
        ready: returns the runtime, loading it where it is not there; called by who holds the engine's turn.
        timeout_s: engine time of one turn, 0 for any.
    """

    def __init__(self, turns: Turns, outcomes: Outcomes, ready: Callable[[], Runtime], timeout_s: float = 0.0) -> None:
        self._turns, self._outcomes, self._ready, self._timeout_s = turns, outcomes, ready, timeout_s
        self._engine: ChatEngine | None = None
        self._stats: PrefixStats | None = None

    def stream(self, request: ChatRequest, cancelled: Callable[[], bool] = lambda: False) -> Iterator[ChatStatus | ChatToken | ChatTurn]:
        """Yields what a turn is doing, its answer piece by piece and, last, the turn; closing the iterator stops it.

        Raises EngineError.

        Args:
            cancelled: stops it too, without waiting for its next event.
        """
        events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        stopped = threading.Event()
        worker = ThreadPoolExecutor(1, thread_name_prefix="chat")
        done = worker.submit(self._turn, request, events.put, lambda: stopped.is_set() or cancelled())
        done.add_done_callback(_report)
        done.add_done_callback(lambda future: events.put(None))
        try:
            for event in _told(events):
                yield event
                if isinstance(event, ChatTurn):
                    return
            done.result()
        finally:
            stopped.set()
            worker.shutdown(wait=False)

    def prefix_stats(self) -> PrefixStats | None:
        """Returns the prefix cache as it was after the last turn; None before the first one."""
        return self._stats

    def forget(self) -> None:
        """Drops the engine with its prefix cache; called by who holds the engine's turn, when the model changes."""
        self._engine = self._stats = None

    def _turn(self, request: ChatRequest, emit: Emit, cancelled: Callable[[], bool]) -> None:
        """Tells the turn, its answer as it grows, and settles it before the engine is handed on: the next turn finds it settled."""
        pieces = Pieces(lambda text: emit(ChatToken(text)))

        def progress(text: str, share: float) -> None:
            emit(ChatStatus(text, share))

        with self._outcomes.errors_told(), self._turns.turn(lambda ahead: emit(_waiting(ahead)), cancelled):
            if self._engine is None:
                progress("Loading the model", 0.0)
            engine = self._engine_now()
            try:
                turn = engine.turn(request, progress, pieces.grow, within(self._timeout_s, cancelled))
                pieces.end(turn.answer)
                self._outcomes.tell(turn)
                self._stats = engine.prefixes.stats()
                emit(turn)
                engine.settle(request, turn)
            finally:
                self._stats = engine.prefixes.stats()

    def _engine_now(self) -> ChatEngine:
        from engine.chat.engine import ChatEngine

        runtime = self._ready()
        if self._engine is None or self._engine.runtime is not runtime:
            self._engine = ChatEngine(runtime)
        return self._engine


def _told(events: queue.SimpleQueue[Event | None]) -> Iterator[Event]:
    """Yields events until None; of statuses that wait one behind the other the newest alone, of the answer every piece."""
    while (event := events.get()) is not None:
        while isinstance(event, ChatStatus) and not events.empty():
            following = events.get()
            if following is None:
                return
            if not isinstance(following, ChatStatus):
                yield event
            event = following
        yield event


def _report(done: Future[None]) -> None:
    """Logs what nobody foresaw, without a word of what was asked; a turn that was told already has nobody else to hear of it."""
    error = done.exception()
    if error is not None and not isinstance(error, EngineError):
        logger.error("a turn of a conversation failed: %s", type(error).__name__)


def _waiting(ahead: int) -> ChatStatus:
    return ChatStatus(f"Waiting: {ahead} request{'s' if ahead > 1 else ''} ahead", 0.0, ahead)
