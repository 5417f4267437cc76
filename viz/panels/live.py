"""What callbacks that run the engine share: statuses at a readable pace, errors as sentences, the state of two buttons."""

import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.types import Run, Status
from viz.panels.fuse_view import status
from viz.panels.players import pack

MIN_GAP_S = 0.22
# The events behind a cancelled one still end: what they had under way is shown after Stop's own sentence, and a run that is started
# before they have ended would get their button states.
SETTLE_S = 0.4


def thinned(items: Iterator[Status | Run]) -> Iterator[Status | Run]:
    """Yields at most about four statuses a second, and always the run."""
    last = 0.0
    for item in items:
        now = time.monotonic()
        if isinstance(item, Run) or now - last >= MIN_GAP_S:
            last = now
            yield item


def failed(error: EngineError) -> dict[str, str]:
    """Shows an error's sentence as a toast and returns it as the status line's value."""
    gr.Warning(str(error).replace("<", "‹").replace(">", "›"), title="Not run")
    return pack(status("error", str(error)))


def buttons(running: bool) -> list[Any]:
    """Returns the starting and the stopping button as they are while something runs, or nothing does."""
    return [gr.Button(interactive=not running), gr.Button(interactive=running)]


def settled(stopped: dict[str, str]) -> list[Any]:
    """Returns the status after Stop once more, and both buttons, once the events of a cancelled run have ended."""
    time.sleep(SETTLE_S)
    return [stopped, *buttons(running=False)]


def waiting_buttons() -> list[Any]:
    """Returns both buttons as they are while what was stopped comes to its end."""
    return [gr.Button(interactive=False), gr.Button(interactive=False)]


def idle_buttons() -> list[Any]:
    """Returns both buttons as they are while nothing runs."""
    return buttons(running=False)
