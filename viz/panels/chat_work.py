"""Work of one visitor that goes on in a thread of its own, so that stopping it never waits for it. Knows nothing of Gradio."""

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

POLL_S, SILENCE_S = 0.1, 1.0
Work = Callable[[Callable[[Any], None], Callable[[], bool]], None]


class Running:
    """What a visitor has running: stopped by its owner, or dropped with all it would have shown."""

    def __init__(self) -> None:
        self._stopped, self._dropped, self._ended = False, False, False

    @property
    def is_stopped(self) -> bool:
        """Whether the work is to end."""
        return self._stopped

    @property
    def is_dropped(self) -> bool:
        """Whether nobody wants to see how it ends."""
        return self._dropped

    @property
    def is_going_on(self) -> bool:
        """Whether it has neither ended nor been stopped."""
        return not (self._ended or self._stopped)

    def stop(self) -> None:
        """Ends the work; what it has so far is shown."""
        self._stopped = True

    def drop(self) -> None:
        """Ends the work and shows nothing of it."""
        self._stopped = self._dropped = True

    def end(self) -> None:
        """Notes that the work is over."""
        self._ended = True


def items_of(work: Work, running: Running) -> Iterator[Any]:
    """Yields what `work` puts, None after a second of silence, and ends soon after `running` is stopped.

    Args:
        work: called with a function that takes an item and one that says whether to end.

    Raises what the work raised. Closing the iterator stops the work.
    """
    items: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker = ThreadPoolExecutor(1, thread_name_prefix="chat")
    done: Future[None] = worker.submit(work, items.put, lambda: running.is_stopped)
    try:
        yield from _until_done(items, done, running)
    finally:
        running.end()
        if not done.done():
            running.stop()
        worker.shutdown(wait=False)


def _until_done(items: "queue.SimpleQueue[Any]", done: "Future[None]", running: Running) -> Iterator[Any]:
    silence_s = 0.0
    while not running.is_stopped:
        # Asked before the queue is: what was put before the end is still in it then.
        is_over = done.done()
        try:
            yield items.get(timeout=POLL_S)
            silence_s = 0.0
        except queue.Empty:
            if is_over:
                done.result()
                return
            silence_s += POLL_S
            if silence_s >= SILENCE_S:
                # A page that has gone is noticed when something is handed over.
                yield None
                silence_s = 0.0
