"""The content-addressed store of chunk KV: on disk where it can, in memory where it must. Knows nothing of models."""

from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from torch import Tensor

from engine.chunks.disk import DiskChunks
from engine.chunks.file import StoredChunk, hold_chunk
from engine.chunks.key import ChunkKey
from engine.chunks.layout import encode, prepare_tensors
from engine.chunks.memory import MemoryChunks
from engine.chunks.notices import Notices

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The store's contents, and what this process did with it so far.

    Args:
        num_files: chunks held, on disk and in memory.
        size_bytes: their bytes, set-aside files included; the capacity bounds disk and memory each.
        evictions: chunks that this process dropped to make room.
        folder: None where the store was made without one.
        writable: whether the last attempt to write to the folder went well.
    """

    num_files: int
    size_bytes: int
    capacity_bytes: int
    hits: int
    misses: int
    evictions: int
    folder: str | None
    writable: bool


class ChunkStore:
    """Chunk KV by key, bounded in bytes, least recently used dropped first; safe to call from many threads and processes.

    A file that cannot be trusted is a miss and a folder that cannot be written to is memory, each with a notice.

    Args:
        folder: where the files are, made when missing; None keeps chunks in memory only.
        capacity_bytes: bound of the folder, and of the memory fallback.
        direct: read chunk files past the system's page cache, where that can be had.
    """

    def __init__(self, folder: Path | None, capacity_bytes: int, direct: bool = False) -> None:
        self._notices = Notices()
        self._disk = None if folder is None else DiskChunks(folder, capacity_bytes, self._notices, direct)
        self._memory = MemoryChunks(capacity_bytes)
        self._capacity_bytes = capacity_bytes
        self._hits = self._misses = self._dropped = 0
        self._lock = Lock()

    def get(self, key: ChunkKey) -> StoredChunk | None:
        """Returns the chunk and marks it as used now, or None where it is missing or its file is damaged."""
        chunk = self._find(key)
        with self._lock:
            self._hits += chunk is not None
            self._misses += chunk is None
        return chunk

    def put(self, key: ChunkKey, keys: Tensor, values: Tensor, importance: Tensor, time_s: float = 0.0) -> StoredChunk:
        """Returns the stored chunk, writing it unless a valid one is there. Raises ValueError on a wrong shape or dtype.

        Args:
            keys, values: [L, n, Hkv, D] of the key's dtype on any device, K before rotary embedding; copied.
            importance: float32 [L, n], the tokens' KVzip scores.
            time_s: what computing them took, kept with the chunk.
        """
        tensors = prepare_tensors(key, keys, values, importance, time_s)
        found = self._disk.get(key) if self._disk is not None and self._disk.is_writable else self._find(key)
        if found is not None:
            return found
        payload = b"" if self._disk is None else encode(key, tensors)
        size_bytes = len(payload) or tensors.size_bytes
        if size_bytes > self._capacity_bytes:
            self._tell_too_large(size_bytes)
            return hold_chunk(key, tensors)
        stored = None if self._disk is None else self._disk.put(key, payload)
        if stored is None:
            return self._hold(key.hash, hold_chunk(key, tensors))
        with self._lock:
            self._memory.discard(key.hash)
        return stored

    def drain_notices(self) -> tuple[str, ...]:
        """Returns what the store did on its own since the last call, one sentence each, oldest first."""
        return self._notices.drain()

    @property
    def direct_hindrance(self) -> str | None:
        """Returns why chunk files are not read past the page cache, None where they are."""
        return "chunks are in memory" if self._disk is None else self._disk.direct_hindrance

    @property
    def num_bytes(self) -> int:
        """Returns the bytes held on disk and in memory."""
        return self.stats().size_bytes

    def stats(self) -> StoreStats:
        """Returns the present contents and the counts so far."""
        entries = [] if self._disk is None else self._disk.entries()
        with self._lock:
            return StoreStats(
                num_files=sum(not entry.is_set_aside for entry in entries) + len(self._memory),
                size_bytes=sum(entry.size_bytes for entry in entries) + self._memory.num_bytes,
                capacity_bytes=self._capacity_bytes,
                hits=self._hits,
                misses=self._misses,
                evictions=self._dropped + (0 if self._disk is None else self._disk.num_evictions),
                folder=None if self._disk is None else str(self._disk.root),
                writable=self._disk is not None and self._disk.is_writable,
            )

    def clear(self) -> None:
        """Drops every chunk, on disk and in memory; chunks in use stay readable until they are let go."""
        with self._lock:
            self._memory.clear()
        self._notices.forget_states()
        if self._disk is not None:
            self._disk.clear()

    def _find(self, key: ChunkKey) -> StoredChunk | None:
        stored = None if self._disk is None else self._disk.get(key)
        if stored is not None:
            return stored
        with self._lock:
            return self._memory.get(key.hash)

    def _hold(self, chunk_hash: str, chunk: StoredChunk) -> StoredChunk:
        with self._lock:
            self._dropped += self._memory.put(chunk_hash, chunk)
        return chunk

    def _tell_too_large(self, size_bytes: int) -> None:
        sizes = f"A chunk of {size_bytes / _MIB:.1f} MiB is larger than the whole chunk store ({self._capacity_bytes / _MIB:.1f} MiB)"
        self._notices.add_state(f"{sizes} and is kept for its request only; results stay right.")
