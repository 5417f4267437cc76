"""What all routes share: the session behind them, who is let in, and the threads in which the engine's iterators run."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fastapi import Request

from engine.chat.types import ChatRequest, ChatStatus, ChatToken, ChatTurn, PrefixStats
from engine.health import Health
from engine.library.library import Library
from engine.library.types import DocumentInfo, IngestStatus
from engine.outcomes import Outcomes
from engine.serving.clients import Client, identify
from engine.serving.problems import NoModel
from engine.serving.quotas import Quotas
from engine.settings import Settings

ALIAS, BUNDLED_SETTING, BUNDLED_NAME = "fusescope", "bundled", "SmolLM2-135M-Instruct"
# Requests beyond those that may wait: the one that runs, and those that just look something up.
SPARE_THREADS = 8


class ServedSession(Protocol):
    """The part of engine.session.Session that the routes use."""

    settings: Settings
    outcomes: Outcomes
    library: Library

    @property
    def num_waiting(self) -> int:
        """Returns how many requests wait for the engine."""

    def health(self) -> Health:
        """Returns whether the model is there."""

    def chat(self, request: ChatRequest, cancelled: Callable[[], bool]) -> Iterator[ChatStatus | ChatToken | ChatTurn]:
        """Yields statuses, pieces of the answer and last the turn; closing it stops it, as does `cancelled`. Raises EngineError."""

    def add_document(self, owner: str, library: str, name: str, data: bytes) -> Iterator[IngestStatus | DocumentInfo]:
        """Yields what an upload is doing and last the document; closing it stops it. Raises EngineError."""

    def prefix_stats(self) -> PrefixStats | None:
        """Returns the state of the prefix cache of conversations."""


@dataclass(frozen=True, slots=True)
class Door:
    """Lets requests in."""

    session: ServedSession
    quotas: Quotas
    executor: Executor

    @classmethod
    def to(cls, session: ServedSession) -> "Door":
        """Returns the door to a session, with quotas and threads of its own."""
        protection = session.settings.protection
        executor = ThreadPoolExecutor(protection.max_waiting + SPARE_THREADS, thread_name_prefix="api")
        return cls(session, Quotas(protection), executor)

    def identify(self, request: Request) -> Client:
        """Returns who sent a request. Raises AccessDenied."""
        address = request.client.host if request.client else "unknown"
        return identify(request.headers, address, self.session.settings.protection)

    def admit(self, request: Request) -> Client:
        """Returns who sent a request, which is charged. Raises AccessDenied, QuotaExceeded."""
        client = self.identify(request)
        self.quotas.charge(client, "requests")
        return client

    @property
    def model_id(self) -> str:
        """Returns what the model that runs (or will) is called here: a local folder by its last part."""
        health, wanted = self.session.health(), self.session.settings.model
        name = health.model or (BUNDLED_NAME if wanted == BUNDLED_SETTING else wanted)
        return Path(name).name if Path(name).is_absolute() else name

    def check_model(self, name: str) -> str:
        """Returns the model's id where `name` is one of its names. Raises NoModel."""
        known = self.model_id
        names = {known, ALIAS, self.session.health().model} | ({BUNDLED_SETTING} if known == BUNDLED_NAME else set())
        if name not in names:
            raise NoModel(f"The model {name[:80]!r} does not run here; ask for {known!r}, or choose another on the page.")
        return known
