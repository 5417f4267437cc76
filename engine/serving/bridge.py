"""From the engine's iterators, which block, to the server's loop: one thread each, stopped as soon as the client is gone."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from typing import TypeVar

from fastapi import Request

T = TypeVar("T")
Stopped = Callable[[], bool]
TICK_S = 0.5
_END = object()


async def flowing(make: Callable[[Stopped], Iterator[T]], request: Request, executor: Executor) -> AsyncIterator[T | None]:
    """Yields what an iterator gives, and None about twice a second while it gives nothing. Raises what the iterator raises.

    The iterator is closed when the client has gone, which ends this generator too, and when this generator is closed.

    Args:
        make: makes the iterator, in the thread that will run it; it is given a function that tells whether to stop.
    """
    loop, events, stopped = asyncio.get_running_loop(), asyncio.Queue[object](), threading.Event()

    def work() -> None:
        with closing(make(stopped.is_set)) as made:  # type: ignore[type-var]
            for event in made:
                if stopped.is_set():
                    return
                loop.call_soon_threadsafe(events.put_nowait, event)

    done = loop.run_in_executor(executor, work)
    done.add_done_callback(lambda _: events.put_nowait(_END))
    try:
        while True:
            try:
                event = await asyncio.wait_for(events.get(), TICK_S)
            except TimeoutError:
                if await request.is_disconnected():
                    return
                yield None
                continue
            if event is _END:
                break
            yield event  # type: ignore[misc]
        await done
    finally:
        stopped.set()
        # Nobody waits for it any more; what it still raises (Cancelled, as a rule) is of no interest.
        done.add_done_callback(lambda future: future.cancelled() or future.exception())
