"""A comparison that tells what it is doing: one stream of statuses, which carry the answers as they grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import StoreError
from engine.types import FusionRequest, Run, Status

if TYPE_CHECKING:
    from engine.runtime import Runtime


def compare_told(
    get_runtime: Callable[[], Runtime],
    request: FusionRequest,
    methods: tuple[str, ...],
    on_status: Callable[[Status], None],
    cancelled: Callable[[], bool],
) -> Run:
    """Returns the run of a request by the named methods. Raises EngineError of every kind.

    Args:
        get_runtime: called once; loading a model may take long.
    """
    from engine.compare import compare

    answers: dict[str, str] = {}
    last = Status("Loading the model", 0.0)

    def progress(text: str, share: float) -> None:
        nonlocal last
        last = Status(text, share, answers=dict(answers))
        on_status(last)

    def on_answer(method: str, text: str) -> None:
        answers[method] = text
        on_status(replace(last, answers=dict(answers)))

    on_status(last)
    runtime = get_runtime()
    try:
        return compare(runtime, request, methods, progress, on_answer, cancelled)
    except StoreError as error:
        # A file vanished or broke under the request: the store has set it aside, so the chunk is computed anew.
        progress(f"{error} It is computed again.", 0.0)
        return compare(runtime, request, methods, progress, on_answer, cancelled)
