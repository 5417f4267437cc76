"""Work in a thread of its own whose events are read as they come: how long jobs reach a page."""

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from engine.types import Status

Put, IsStopped = Callable[[Any], None], Callable[[], bool]


def streamed(work: Callable[[Put, IsStopped], Any], name: str, cancelled: IsStopped = lambda: False) -> Iterator[Any]:
    """Yields what `work` puts, in order, and raises what it raises; closing the iterator stops it.

    A status is passed over where something newer waits, so that a slow page does not fall behind; all else is kept.

    Args:
        work: called with a function that takes an event, and one that says whether it is to stop.
    """
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stopped, end = threading.Event(), object()
    worker = ThreadPoolExecutor(1, thread_name_prefix=name)
    done = worker.submit(work, events.put, lambda: stopped.is_set() or cancelled())
    done.add_done_callback(lambda future: events.put(end))
    try:
        while (event := events.get()) is not end:
            if not isinstance(event, Status) or events.empty():
                yield event
        done.result()
    finally:
        stopped.set()
        worker.shutdown(wait=False)
