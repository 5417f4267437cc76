"""A session's library: opened when first asked for, with uploads as streams and KV computed behind the visitors' requests."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from engine.chat.types import ChatTurn
from engine.errors import EngineError
from engine.library.counting import TokenCounter
from engine.library.embedder import Embedder
from engine.library.ingest import CONTEXT, KvIngest, kv_name
from engine.library.ledger import UsedChunk
from engine.library.library import Library
from engine.library.shelves import scenario_chunk_id
from engine.library.tools import KvFiles, LibraryTools
from engine.library.types import DocumentInfo, IngestStatus
from engine.settings import Settings
from engine.streaming import IsStopped, Put, streamed
from engine.turns import Turns
from engine.types import Run

if TYPE_CHECKING:
    from engine.runtime import Runtime

logger = logging.getLogger(__name__)


class Documents:
    """Opens the library in the folder that the settings name. Thread-safe.

    Args:
        ready: returns the runtime, loading it where it is not there.
        loaded: returns the runtime where it is there.
    """

    def __init__(self, settings: Settings, turns: Turns, ready: Callable[[], Runtime], loaded: Callable[[], Runtime | None]) -> None:
        self._settings, self._turns, self._ready, self._loaded = settings, turns, ready, loaded
        self._library: Library | None = None
        self._ingest: KvIngest | None = None
        self._lock = threading.Lock()

    @property
    def library(self) -> Library:
        """Returns the library, opened now where it is not open; KV that is still wanted is then computed. Raises LibraryUnavailable."""
        with self._lock:
            if self._library is None:
                self._library = Library.open(self._settings.cache_dir / "library", self._settings.library, self._tools())
                self._ingest = KvIngest(self._library, self._turns, self._ready)
                self._ingest.wake()
                # A thread in the midst of computing must not outlive the interpreter.
                atexit.register(self.close)
            return self._library

    def add(self, owner: str, library: str, name: str, data: bytes) -> Iterator[IngestStatus | DocumentInfo]:
        """Yields what an upload is doing and, last, the document, which can be searched then; closing the iterator stops it.

        Its KV is computed in the background afterwards. Raises as `Library.add` does.
        """

        def work(put: Put, is_stopped: IsStopped) -> None:
            added = self.library.add(owner, library, name, data, put, is_stopped)
            self.wake()
            put(added)

        return streamed(work, "upload")

    def wake(self) -> None:
        """Has the background computation look for something to do: after an upload, or for another model."""
        if self._ingest is not None:
            self._ingest.wake()

    def note(self, outcome: object) -> None:
        """Counts the uses of chunks by a finished run or turn, where the library is open; never raises for the library's sake."""
        run = outcome.run if isinstance(outcome, ChatTurn) else outcome
        runtime = self._loaded()
        if self._library is None or runtime is None or not isinstance(run, Run):
            return
        try:
            self._library.kv.note_use(kv_name(runtime), _used(run))
        except EngineError as error:
            logger.warning("uses of chunks were not counted: %s", type(error).__name__)

    def close(self) -> None:
        """Stops the background computation and closes the file."""
        atexit.unregister(self.close)
        with self._lock:
            if self._ingest is not None:
                self._ingest.stop()
            if self._library is not None:
                self._library.close()
            self._library = self._ingest = None

    def _tools(self) -> LibraryTools:
        settings = self._settings
        return LibraryTools(
            count_tokens=TokenCounter(self._ready),
            kv_model=lambda: kv_name(runtime) if (runtime := self._loaded()) else "",
            kv_files=KvFiles(settings.cache_dir / "chunks"),
            embedder=Embedder(settings.embedder, settings.cache_dir) if settings.embedder else None,
        )


def _used(run: Run) -> list[UsedChunk]:
    """Returns the chunks of a run by the library's ids, with their KV where it is that which is computed ahead."""
    is_ahead = run.chunk_context == CONTEXT
    return [
        UsedChunk(
            scenario_chunk_id(run.scenario, chunk.chunk_id) if run.scenario else chunk.chunk_id,
            chunk.cache_hash if is_ahead else "",
            chunk.size_bytes,
            chunk.stop - chunk.start,
        )
        for chunk in run.chunks
    ]
