"""Chunks in a folder, verified when read and bounded in bytes. Knows nothing of tensors or of what happens on a miss.

Eviction drops the least recently used first and spares what this process holds: set-aside files go first, then files
that nobody here holds, then held ones that were closed, then held ones in use, opened before so that they stay readable.
"""

import weakref
from pathlib import Path
from threading import Lock

from engine.chunks.direct import DirectFile, direct_hindrance
from engine.chunks.file import OpenFile, StoredChunk, open_chunk
from engine.chunks.folder import ChunkFolder, FolderEntry
from engine.chunks.key import ChunkKey
from engine.chunks.layout import DamagedFile
from engine.chunks.notices import Notices
from engine.chunks.verify import FileHandle, Signature
from engine.errors import StoreError


class DiskChunks:
    """Chunk files of a folder that other processes may share. Never raises: what goes wrong becomes None and a notice.

    Args:
        root: the folder, made when missing.
        capacity_bytes: bound of all its chunk files, set-aside ones included.
        direct: read chunks past the page cache where the file system lets one; `direct_hindrance` says why not.
    """

    def __init__(self, root: Path, capacity_bytes: int, notices: Notices, direct: bool = False) -> None:
        self._folder = ChunkFolder(root)
        self._capacity_bytes = capacity_bytes
        self._notices = notices
        self._verified: dict[str, Signature] = {}
        self._handed_out: weakref.WeakSet[StoredChunk] = weakref.WeakSet()
        self._lock = Lock()
        self.num_evictions = 0
        self.is_writable = True
        try:
            self._folder.prepare()
        except OSError as error:
            self._tell_unwritable(error)
        self.direct_hindrance = direct_hindrance(root) if direct else "the store reads through it"
        self._open_file: OpenFile = FileHandle if self.direct_hindrance else DirectFile
        self._make_room()

    @property
    def root(self) -> Path:
        """Returns the folder."""
        return self._folder.root

    def entries(self) -> list[FolderEntry]:
        """Returns the chunk files that are there now, set-aside ones included."""
        return self._folder.entries()

    def get(self, key: ChunkKey) -> StoredChunk | None:
        """Returns a verified chunk, marked as used now, or None; a damaged file is set aside."""
        chunk_hash = key.hash
        with self._lock:
            trusted = self._verified.get(chunk_hash)
        try:
            chunk = open_chunk(self._folder.path(chunk_hash), key, trusted, self._open_file)
        except DamagedFile as error:
            self._set_aside(chunk_hash, str(error))
            return None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._notices.add_state(f"Chunk files in {self.root} could not be read ({error.strerror}); the chunks are computed again.")
            return None
        with self._lock:
            if chunk.signature is not None:
                self._verified[chunk_hash] = chunk.signature
            self._handed_out.add(chunk)
        return chunk

    def put(self, key: ChunkKey, payload: bytes) -> StoredChunk | None:
        """Returns the chunk as written, or None where the folder takes no files now. `payload` must fit the capacity."""
        chunk_hash = key.hash
        self._make_room(len(payload), chunk_hash)
        try:
            signature = self._folder.write(chunk_hash, payload)
        except OSError as error:
            self._tell_unwritable(error)
            return None
        with self._lock:
            self.is_writable = True
            self._verified[chunk_hash] = signature
        # Another process may have stored something in between.
        self._make_room(len(payload), chunk_hash)
        return self.get(key)

    def clear(self) -> None:
        """Removes every chunk file; chunks in use stay readable until they are let go."""
        held = self._held_chunks()
        left = [entry for entry in self.entries() if not self._remove(entry, held.get(entry.hash, []))]
        if left:
            self._notices.add(f"{len(left)} chunk files in {self.root} could not be removed; check who may write to the folder.")

    def _make_room(self, num_bytes: int = 0, chunk_hash: str = "") -> None:
        """Evicts until the capacity holds `num_bytes` of the chunk `chunk_hash`, be it there already or not, besides the others."""
        entries = self.entries()
        self._forget_vanished({entry.hash for entry in entries})
        others = [entry for entry in entries if entry.is_set_aside or entry.hash != chunk_hash]
        total_bytes = num_bytes + sum(entry.size_bytes for entry in others)
        held = self._held_chunks()
        for entry in sorted(others, key=lambda entry: (_protection(entry, held), entry.last_use_ns)):
            if total_bytes <= self._capacity_bytes:
                return
            if self._folder.is_unchanged(entry) and self._remove(entry, held.get(entry.hash, [])):
                total_bytes -= entry.size_bytes
                with self._lock:
                    self.num_evictions += not entry.is_set_aside

    def _remove(self, entry: FolderEntry, holders: list[StoredChunk]) -> bool:
        """Removes a file and returns whether it is gone; those who use it keep it open."""
        if not entry.is_set_aside:
            for chunk in holders:
                _keep_readable(chunk)
        return self._folder.remove(entry)

    def _held_chunks(self) -> dict[str, list[StoredChunk]]:
        """Returns the chunks handed out that somebody in this process still holds, by hash."""
        with self._lock:
            chunks = list(self._handed_out)
        held: dict[str, list[StoredChunk]] = {}
        for chunk in chunks:
            held.setdefault(chunk.hash, []).append(chunk)
        return held

    def _forget_vanished(self, present: set[str]) -> None:
        with self._lock:
            self._verified = {name: signature for name, signature in self._verified.items() if name in present}

    def _set_aside(self, chunk_hash: str, reason: str) -> None:
        name = self._folder.path(chunk_hash).name
        try:
            self._folder.set_aside(chunk_hash)
        except FileNotFoundError:
            # Another process was quicker and gave the notice.
            return
        except OSError as error:
            kept = f"it could not be set aside ({error.strerror})"
            self._notices.add_state(f"The chunk file {name} is not used because {reason}; {kept}, and the chunk is computed again.")
            return
        self._notices.add(f"The chunk file {name} was set aside because {reason}; the chunk is computed again.")

    def _tell_unwritable(self, error: OSError) -> None:
        with self._lock:
            self.is_writable = False
        kept = "so new chunks are kept in memory until the app stops"
        self._notices.add_state(f"The chunk folder {self.root} cannot be written to ({error.strerror}), {kept}; results stay right.")


def _protection(entry: FolderEntry, held: dict[str, list[StoredChunk]]) -> int:
    """Returns how late a file is evicted, whatever its last use: 0 set aside, 1 not held here, 2 held and closed, 3 in use."""
    if entry.is_set_aside:
        return 0
    chunks = held.get(entry.hash)
    if chunks is None:
        return 1
    return 3 if any(chunk.in_use for chunk in chunks) else 2


def _keep_readable(chunk: StoredChunk) -> None:
    if not chunk.in_use:
        return
    try:
        chunk.open()
    except StoreError:
        # Already lost: its next read says so and the caller computes it again.
        return
