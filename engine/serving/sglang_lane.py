"""Requests to the SGLang server that the settings name, in turn with those of the built-in engine. Light until one is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.errors import BadRequest
from engine.outcomes import Outcomes
from engine.streaming import streamed
from engine.turns import Turns, within
from engine.types import FusionRequest, Run, Status

if TYPE_CHECKING:
    from engine.runtime import Runtime

# What SGLang does by itself with a prompt it has seen before; the only method there that the built-in engine does not have.
PREFIX_CACHE = "prefix_cache"
URL_VARIABLE = "FUSESCOPE_SGLANG_URL"
Told = Callable[[Status], None]


class SGLangLane:
    """One server beside the built-in engine. Thread-safe: it shares the engine's turns, as both may be on one machine.

    Args:
        url: of the server; where it is can be set by nobody but who starts this process.
        ready: returns the loaded model, which the server has to serve as well.
        timeout_s: of one request, 0 for none.
    """

    def __init__(self, url: str, turns: Turns, outcomes: Outcomes, ready: Callable[[], Runtime], timeout_s: float) -> None:
        self._url, self._turns, self._outcomes = url, turns, outcomes
        self._ready, self._timeout_s = ready, timeout_s

    @property
    def label(self) -> str:
        """Returns how people are told of the server."""
        return f"SGLang at {urlsplit(self._url).netloc}"

    def run(
        self,
        request: FusionRequest,
        methods: tuple[str, ...],
        on_status: Told = lambda status: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Run:
        """Returns the run of a request by the server. Raises EngineError with one sentence; the built-in engine is not touched."""
        if not methods:
            raise BadRequest("No method is selected; choose at least one, full prefill among them to compare with.")
        waiting = lambda ahead: on_status(Status(f"Waiting: {ahead} request{'s' if ahead > 1 else ''} ahead", 0.0, ahead))  # noqa: E731
        with self._outcomes.errors_told(), self._turns.turn(waiting, cancelled):
            on_status(Status(f"Asking {self.label} what it serves", 0.0))
            run = self._run(request, methods, on_status, within(self._timeout_s, cancelled))
        self._outcomes.tell(run)
        return run

    def stream(self, request: FusionRequest, methods: tuple[str, ...]) -> Iterator[Status | Run]:
        """Yields what the request is doing and, last, its run; closing the iterator stops it. Raises EngineError."""
        return streamed(lambda put, stopped: put(self.run(request, methods, put, stopped)), "sglang")

    def _run(self, request: FusionRequest, methods: tuple[str, ...], on_status: Told, cancelled: Callable[[], bool]) -> Run:
        from engine.serving.sglang_client import client_of
        from engine.serving.sglang_server import SGLangServer

        with closing(SGLangServer(self._url)) as server:
            return client_of(server, self._ready().model).run(request, methods, on_status, cancelled)
