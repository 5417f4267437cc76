"""A server of the API alone, in a thread of the test's process, over a real session on a tiny model or over a script."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI
from launch import free_port
from worlds import tiny_runtime

import engine.runtime
from engine.chat.types import ChatParts, ChatRequest, ChatStatus, ChatToken, ChatTurn, Citation, PrefixStats, SourceSpan
from engine.errors import Cancelled
from engine.health import Health
from engine.outcomes import Outcomes
from engine.protection import Protection
from engine.serving.routes import app_options
from engine.session import Session
from engine.settings import Settings
from engine.types import Provenance

PASSAGES = [
    {"title": "Lamp", "text": "The lamp of Merrow Point was lit in 1871 by Ada Quill."},
    {"title": "Village", "text": "Ada Quill was born in Vell, a village of forty houses."},
    {"title": "Ferry", "text": "Ferry times: 7, 9 and 12. No ferry runs on the feast of St. Orrin."},
]
QUESTION = [{"role": "user", "content": "Where was the lamp lighter born?"}]
SESSION = {"X-Fusescope-Session": "a-text-that-nobody-guesses"}
PROVENANCE = Provenance("live", "2026-11-30 10:00 UTC", "abc", "tiny", "r", "w", "float32", "cpu", 1, "torch", None, "kept", {})


@contextmanager
def api_server(session: Any, **options: Any) -> Iterator[str]:
    """Serves the API of a session and yields its address."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(FastAPI(**app_options(session, **options)), host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def tiny_session(folder: Any, **limits: Any) -> Iterator[Session]:
    """Yields a session whose model is tiny, with some limits of `Protection`."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.runtime, "load_runtime", lambda name, settings, store=None: tiny_runtime(folder))
        yield Session(Settings(model="tiny-llama", cache_dir=folder, num_threads=1, protection=Protection(**limits)))


def turn_of(answer: str, **changed: Any) -> ChatTurn:
    """Returns a made-up turn."""
    known = {
        "answer": answer, "run": None, "provenance": PROVENANCE, "method": "qcfuse", "finish": "stop", "tokens": tuple("abcdefghij"),
        "sources": (SourceSpan(0, 10, "question"),), "num_answer_tokens": 3, "num_prefix_hits": 4, "num_prefix_computed": 1,
        "num_fused_loaded": 2, "num_recomputed": 1, "num_question": 2, "num_turns_dropped": 0, "ttft_s": 0.25,
        "parts_s": ChatParts(0, 0, 0.1, 0, 0, 0.1, 0.05), "citations": (Citation("d1", "a b", 2),), "notices": (),
    }  # fmt: skip
    return ChatTurn(**(known | changed))


@dataclass
class ScriptedSession:
    """Answers as `script(request, cancelled)` says; counts what was closed or cancelled."""

    script: Callable[[ChatRequest, Callable[[], bool]], Iterator[Any]]
    settings: Settings = field(default_factory=lambda: Settings(model="tiny"))
    outcomes: Outcomes = field(default_factory=Outcomes)
    library: Any = None
    state: str = "ready"
    num_waiting: int = 0
    stats: PrefixStats | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def health(self) -> Health:
        """Returns the scripted state."""
        return Health(self.state, "tiny" if self.state == "ready" else None, "A line.")

    def prefix_stats(self) -> PrefixStats | None:
        """Returns the scripted numbers."""
        return self.stats

    def chat(self, request: ChatRequest, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Any]:
        """Plays the script; `ended` is set once it is over, however it ends."""
        try:
            yield from self.script(request, cancelled)
        finally:
            self.ended.set()


def answering(*pieces: str) -> Callable[..., Iterator[Any]]:
    """Returns a script that answers in pieces."""

    def script(request: ChatRequest, cancelled: Callable[[], bool]) -> Iterator[Any]:
        yield ChatStatus("Waiting: 1 request ahead", 0.0, 1)
        yield ChatStatus("Computing", 0.5)
        yield from map(ChatToken, pieces)
        yield turn_of("".join(pieces))

    return script


def endless(request: ChatRequest, cancelled: Callable[[], bool]) -> Iterator[Any]:
    """Begins an answer and then waits until it is cancelled, without another event."""
    yield ChatStatus("Computing", 0.5)
    yield ChatToken("It")
    while not cancelled():
        time.sleep(0.01)
    raise Cancelled("Stopped.")


def failing(error: Exception, after: tuple[Any, ...] = ()) -> Callable[..., Iterator[Any]]:
    """Returns a script that raises after some events."""

    def script(request: ChatRequest, cancelled: Callable[[], bool]) -> Iterator[Any]:
        yield from after
        raise error

    return script
