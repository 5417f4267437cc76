"""Chunks held in memory, bounded in bytes, least recently used dropped first. Not thread-safe: its owner locks."""

from collections import OrderedDict

from engine.chunks.file import StoredChunk


class MemoryChunks:
    """An ordered set of chunks by hash, oldest use first; a dropped chunk lives on with whoever holds it."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._chunks: OrderedDict[str, StoredChunk] = OrderedDict()

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def num_bytes(self) -> int:
        """Returns the bytes of all chunks held."""
        return sum(chunk.size_bytes for chunk in self._chunks.values())

    def get(self, chunk_hash: str) -> StoredChunk | None:
        """Returns a chunk and makes it the last to be dropped, or None."""
        if chunk_hash in self._chunks:
            self._chunks.move_to_end(chunk_hash)
        return self._chunks.get(chunk_hash)

    def put(self, chunk_hash: str, chunk: StoredChunk) -> int:
        """Holds a chunk that fits the capacity and returns how many others were dropped for it."""
        assert chunk.size_bytes <= self._capacity_bytes, "a chunk larger than the capacity is its caller's to hold"
        self.discard(chunk_hash)
        num_dropped = 0
        while self._chunks and self.num_bytes + chunk.size_bytes > self._capacity_bytes:
            self._chunks.popitem(last=False)
            num_dropped += 1
        self._chunks[chunk_hash] = chunk
        return num_dropped

    def discard(self, chunk_hash: str) -> None:
        """Forgets a chunk if it is held."""
        self._chunks.pop(chunk_hash, None)

    def clear(self) -> None:
        """Forgets all chunks."""
        self._chunks.clear()
