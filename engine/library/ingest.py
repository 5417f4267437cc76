"""Computes the KV of uploaded chunks in the background, one chunk for one turn of the engine, and only when nobody waits.

What is wanted is what the library has no KV of, so that it goes on after a crash where it stopped. Light: torch comes with
the runtime.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from engine.errors import BadRequest, Cancelled, EngineError
from engine.library.library import Library
from engine.library.types import KvJob
from engine.turns import Turns

if TYPE_CHECKING:
    from engine.runtime import Runtime
    from engine.types import Chunk

T = TypeVar("T")
CONTEXT = "system"
# Beyond this share of the store computing ahead would push out what others use.
MAX_STORE_SHARE = 0.8
NUM_TEXTS = 16
SWEEP_EVERY_S = 3600.0
_POLITE_S = 0.05
_RETRY_S = 60.0
_STOP_S = 10.0
_GIB = 2**30


class StoredKv(NamedTuple):
    """Where a chunk's KV lies, and how long the chunk is."""

    kv_hash: str
    size_bytes: int
    num_tokens: int


class KvIngest:
    """One thread that works while the library wants something. Thread-safe.

    Args:
        ready: returns the runtime, loading it where it is not there.
    """

    def __init__(self, library: Library, turns: Turns, ready: Callable[[], Runtime]) -> None:
        self._library, self._turns, self._ready = library, turns, ready
        self._woken, self._stopped = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def wake(self) -> None:
        """Says that there may be something to do; starts the thread where it does not run."""
        self._woken.set()
        with self._lock:
            if self._stopped.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._work, name="kv-ingest", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread; the chunk it computes is given up and stays wanted."""
        self._stopped.set()
        self._woken.set()
        if self._thread is not None:
            # Loading a model cannot be given up; who closes does not wait for that.
            self._thread.join(timeout=_STOP_S)

    def _work(self) -> None:
        swept_s = time.monotonic()
        try:
            while not self._stopped.is_set():
                self._woken.clear()
                self._drain()
                if time.monotonic() - swept_s > SWEEP_EVERY_S:
                    self._sweep()
                    swept_s = time.monotonic()
                # What made it rest may have passed: a model that could not be had, a store without room.
                self._woken.wait(_RETRY_S)
        finally:
            if not self._stopped.is_set():
                self._library.kv.rest("Computing KV ahead has stopped; chunks are computed when they are used.")

    def _drain(self) -> None:
        """Works until nothing is wanted or something is in the way, which is then told."""
        try:
            while not self._stopped.is_set() and self._step():
                pass
        except Cancelled:
            return
        except EngineError as error:
            self._library.kv.rest(f"{error} It is tried again in a minute.")

    def _step(self) -> bool:
        """Does one thing and returns whether there may be more. Raises EngineError."""
        ledger = self._library.kv
        texts = ledger.texts_wanted(NUM_TEXTS)
        if texts:
            self._in_turn(lambda: ledger.embed(texts))
            return True
        if not ledger.wants_kv():
            return False
        runtime = self._ready()
        model = kv_name(runtime)
        job = next(iter(ledger.wanted(model)), None)
        if job is None:
            return False
        if self._is_full(runtime):
            return False
        ledger.rest("")
        self._compute(runtime, model, job)
        return True

    def _compute(self, runtime: Runtime, model: str, job: KvJob) -> None:
        try:
            kv = self._in_turn(lambda: store_chunk(runtime, job.chunk, self._stopped.is_set))
        except BadRequest:
            # Too long for this model, as it was cut for another; its document must not hold up the others.
            self._library.kv.give_up(job.chunk.chunk_id)
            return
        if not self._library.kv.set(model, job.chunk.chunk_id, kv.kv_hash, kv.size_bytes, kv.num_tokens):
            self._library.kv.drop_unused(kv.kv_hash, job.text_hash)

    def _in_turn(self, work: Callable[[], T]) -> T:
        """Returns what the work gives, done in a turn that is only asked for when no request waits."""
        while self._turns.num_waiting and not self._stopped.wait(_POLITE_S):
            pass
        with self._turns.turn(lambda ahead: None, self._stopped.is_set):
            return work()

    def _is_full(self, runtime: Runtime) -> bool:
        """Returns whether the store has no room for chunks that nobody has asked for, and says so."""
        stats = runtime.store.stats()
        full = stats.size_bytes > MAX_STORE_SHARE * stats.capacity_bytes
        if full:
            sizes = f"{stats.size_bytes / _GIB:.1f} of {stats.capacity_bytes / _GIB:.1f} GiB"
            self._library.kv.rest(
                f"The chunk store is nearly full ({sizes}), so further chunks are computed when they are used; raise FUSESCOPE_CHUNK_GIB."
            )
        return full

    def _sweep(self) -> None:
        try:
            self._library.sweep()
        except EngineError as error:
            self._library.kv.rest(str(error))


def kv_name(runtime: Runtime) -> str:
    """Returns what the KV of a chunk depends on beside the chunk: model, revision, dtype, context."""
    spec = runtime.model.spec
    return f"{spec.name}@{spec.revision} {spec.dtype} {CONTEXT}"


def store_chunk(runtime: Runtime, chunk: Chunk, cancelled: Callable[[], bool]) -> StoredKv:
    """Returns where a chunk's KV lies, computing it where the store lacks it. Raises BadRequest, Cancelled."""
    import torch

    segment = runtime.prompts.chunk(chunk)
    ids = torch.from_numpy(segment.ids)
    with torch.inference_mode():
        stored = runtime.source.get(ids, CONTEXT) or runtime.source.compute(ids, CONTEXT, cancelled)
    return StoredKv(stored.hash, stored.size_bytes, stored.num_tokens)
