"""Libraries of documents: what is in them, search, upload, removal. One SQLite file; knows nothing of models."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from engine.errors import BadRequest, Cancelled, UnknownName
from engine.library import catalog, kv_rows, rows, rules
from engine.library.database import Database
from engine.library.ledger import KvLedger
from engine.library.limits import LibraryLimits
from engine.library.migrations import MIGRATIONS
from engine.library.owners import Owners
from engine.library.parse.kinds import shown_name
from engine.library.search import POOL, merge, search_vectors, search_words
from engine.library.shelves import sync_scenarios
from engine.library.tools import LibraryTools
from engine.library.types import (
    SHARED,
    ChunkInfo,
    DocumentInfo,
    Found,
    IngestStatus,
    KvProgress,
    LibraryInfo,
    LibraryStats,
)
from engine.library.uploads import cut_upload, read_upload
from engine.scenarios import load_scenarios

FILE_NAME = "library.sqlite"
MAX_FOUND = 100
# Files that are read at the same time: each may take as much memory as its limit says.
NUM_READERS = 2
_SUMS = (("size_bytes", "documents"), ("hits", "chunks"))


class Library:
    """All libraries in one folder. Safe to call from many threads, and several processes may share the folder.

    An owner is an opaque id of a visitor's session (or of an API key); `SHARED` ("") owns the scenarios. Everybody sees the
    shared libraries and their own, nobody else's; an id of another owner's document is as unknown as one that never was.
    Every method may raise LibraryUnavailable: the disk is full, the file is damaged, or another process held it for too long.
    """

    def __init__(self, database: Database, limits: LibraryLimits, tools: LibraryTools) -> None:
        self._database, self.limits, self._tools = database, limits, tools
        self._owners = Owners(database, limits.owner_hours)
        self._readers = threading.Semaphore(NUM_READERS)
        self.kv = KvLedger(database, tools)

    @classmethod
    def open(cls, folder: Path, limits: LibraryLimits | None = None, tools: LibraryTools | None = None) -> Library:
        """Opens (or makes) the library of a folder and brings the scenarios in it up to date. Raises LibraryUnavailable."""
        database = Database(folder / FILE_NAME, MIGRATIONS, fill=lambda db: sync_scenarios(db, load_scenarios().values(), time.time()))
        library = cls(database, limits or LibraryLimits(), tools or LibraryTools())
        library.sweep()
        return library

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def libraries(self, owner: str) -> tuple[LibraryInfo, ...]:
        """Returns the owner's libraries, by time of making, then the shared ones."""
        with self._seen(owner) as db:
            return catalog.list_libraries(db, owner)

    def new_library(self, owner: str, name: str) -> LibraryInfo:
        """Makes an empty library. Raises BadRequest on a name that is empty, too long or taken, or one library too many."""
        with self._database.writing() as db:
            rules.make_library(db, owner, name, self.limits)
            return next(info for info in catalog.list_libraries(db, owner) if info.name == name)

    def rename(self, owner: str, name: str, new_name: str) -> LibraryInfo:
        """Renames one of the owner's libraries. Raises UnknownName, BadRequest."""
        with self._database.writing() as db:
            library_id = rules.own_library(db, owner, name)
            if new_name != name:
                rules.check_name(db, owner, new_name)
                db.execute("UPDATE libraries SET name = ?, title = ? WHERE id = ?", (new_name, new_name, library_id))
            return next(info for info in catalog.list_libraries(db, owner) if info.name == new_name)

    def remove_library(self, owner: str, name: str) -> int:
        """Deletes one of the owner's libraries with its documents and returns how many those were. Raises UnknownName."""
        with self._dropping() as (db, held):
            library_id = rules.own_library(db, owner, name)
            ids = [row["id"] for row in db.execute("SELECT id FROM documents WHERE library_id = ?", (library_id,))]
            held |= kv_rows.held_kv(db, ids)
            catalog.delete_library(db, library_id)
        return len(ids)

    def documents(self, owner: str, library: str) -> tuple[DocumentInfo, ...]:
        """Returns the documents of a library, oldest first. Raises UnknownName."""
        with self._seen(owner) as db:
            row = catalog.find_library(db, owner, library)
            return rows.read_documents(db, "l.id = ?", (row["id"],), *self._state())

    def document(self, owner: str, document: str) -> DocumentInfo:
        """Returns one document by id. Raises UnknownName."""
        with self._seen(owner) as db:
            rows.find_document(db, owner, document)
            return rows.read_documents(db, "d.id = ?", (document,), *self._state())[0]

    def chunks(self, owner: str, library: str, document: str | None = None, num: int | None = None) -> tuple[ChunkInfo, ...]:
        """Returns the chunks of a library or of one document in it, in reading order, the first `num`. Raises UnknownName."""
        with self._seen(owner) as db:
            row = catalog.find_library(db, owner, library)
            if document is None:
                return rows.read_chunks(db, "l.id = ?", (row["id"],), *self._state(), num)
            rows.find_document(db, owner, document)
            return rows.read_chunks(db, "l.id = ? AND d.id = ?", (row["id"], document), *self._state(), num)

    def chunk(self, owner: str, chunk_id: str) -> ChunkInfo:
        """Returns one chunk by id. Raises UnknownName."""
        with self._seen(owner) as db:
            found = rows.read_chunks(db, "c.chunk_id = ? AND l.owner IN (?, ?)", (chunk_id, owner, SHARED), *self._state())
        if not found:
            raise UnknownName(f"Unknown chunk {chunk_id[:80]!r}; its document was deleted or is not yours.")
        return found[0]

    def search(self, owner: str, library: str, query: str, num: int = 5, documents: Sequence[str] | None = None) -> tuple[Found, ...]:
        """Returns the `num` best chunks for a query, best first; none where no word of it occurs. Raises UnknownName, BadRequest.

        The query is words, never a search expression. Ranking depends on this library's texts alone.

        Args:
            num: 1 to 100. documents: ids of documents to search, all where None.
        """
        if not 1 <= num <= MAX_FOUND:
            raise BadRequest(f"The number of chunks to find is {num}; it must be from 1 to {MAX_FOUND}.")
        embedder = self._tools.embedder
        vector = embedder.embed([query])[0] if embedder and query.strip() else None
        with self._seen(owner) as db:
            row = catalog.find_library(db, owner, library)
            for document in documents or ():
                rows.find_document(db, owner, document)
            near = []
            if vector is not None and embedder is not None:
                near = search_vectors(db, row["id"], vector, embedder.name, POOL, documents)
            words = search_words(db, row["id"], query, max(num, POOL) if near else num, documents)
            hits = merge(words, near)[:num]
            infos = rows.read_chunk_rows(db, [hit.row_id for hit in hits], *self._state())
        return tuple(Found(infos[hit.row_id].chunk(hit.relevance), infos[hit.row_id], hit.bm25_rank, hit.dense_rank) for hit in hits)

    def add(
        self,
        owner: str,
        library: str,
        name: str,
        data: bytes,
        on_status: Callable[[IngestStatus], None] = lambda status: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> DocumentInfo:
        """Reads a file into a library (made when missing) and returns it; the same text again is the document that is there.

        The text is searchable on return. The KV of its chunks is computed afterwards, in the background.
        Raises BadDocument, BadRequest (a limit of the owner's, a shared library), Cancelled (nothing is kept).
        """
        shown = shown_name(name)
        with self._seen(owner) as db:
            rules.check_room(db, owner, len(data), self.limits)
        with self._reader(cancelled):
            upload = read_upload(shown, data, self.limits, on_status, cancelled)
        chunks = cut_upload(upload, self._tools.count_tokens, self.limits, on_status, cancelled)
        on_status(IngestStatus(f"Storing {shown}: {_counted(chunks)}", 0.97, "storing"))
        with self._database.writing() as db:
            rules.check_room(db, owner, len(data), self.limits)
            library_id = rules.own_or_new_library(db, owner, library, self.limits)
            document_id = blake2b(f"{owner}\0{library_id}\0{upload.text_hash}".encode(), digest_size=8).hexdigest()
            there = db.execute("SELECT name FROM documents WHERE id = ?", (document_id,)).fetchone()
            if there is None:
                catalog.insert_document(
                    db, library_id, upload.row(document_id, time.time()), chunks, [f"{document_id}-{i:04d}" for i in range(len(chunks))]
                )
            info = rows.read_documents(db, "d.id = ?", (document_id,), *self._state())[0]
        told = f"{shown} can be searched: {_counted(chunks)}" if there is None else f"{shown} is there already, as {info.name}"
        on_status(IngestStatus(f"{told}.", 1.0, "done"))
        return info

    def remove(self, owner: str, document: str) -> None:
        """Deletes a document and the stored KV that nobody else's chunk uses. Raises UnknownName, BadRequest on a shared one."""
        with self._dropping() as (db, held):
            row = rows.find_document(db, owner, document)
            if row["owner"] == SHARED:
                raise BadRequest(f"The document {row['name']!r} belongs to everybody and cannot be deleted.")
            held |= kv_rows.held_kv(db, [document])
            catalog.delete_document(db, row["library_id"], document)

    def remove_owner(self, owner: str) -> int:
        """Deletes all that an owner has, with its stored KV; returns the number of documents. Unknown owners have none."""
        if owner == SHARED:
            raise BadRequest("What belongs to everybody cannot be deleted.")
        self._owners.forget(owner)
        with self._dropping() as (db, held):
            libraries = [row["id"] for row in db.execute("SELECT id FROM libraries WHERE owner = ?", (owner,))]
            ids = [
                row["id"]
                for row in db.execute("SELECT d.id FROM documents d JOIN libraries l ON l.id = d.library_id WHERE l.owner = ?", (owner,))
            ]
            held |= kv_rows.held_kv(db, ids)
            for library_id in libraries:
                catalog.delete_library(db, library_id)
            db.execute("DELETE FROM owners WHERE owner = ?", (owner,))
        return len(ids)

    def sweep(self) -> int:
        """Deletes what belongs to owners who were not seen for `owner_hours`, and returns how many those were."""
        gone = self._owners.gone()
        for owner in gone:
            self.remove_owner(owner)
        return len(gone)

    def touch(self, chunk_ids: Iterable[str]) -> None:
        """Counts a use of each chunk and notes the time; unknown ids are passed over."""
        with self._database.writing() as db:
            db.executemany("UPDATE chunks SET hits = hits + 1, last_use_s = ? WHERE chunk_id = ?", [(time.time(), i) for i in chunk_ids])

    def kv_progress(self, owner: str) -> KvProgress:
        """Returns how far the KV of the owner's documents is, which is computed in the background."""
        return self.kv.progress(owner)

    def cancel_kv(self, owner: str, document: str) -> None:
        """Stops computing a document's KV ahead; its chunks are computed when they are used. Raises UnknownName."""
        self.kv.set_wanted(owner, document, False)

    def resume_kv(self, owner: str, document: str) -> None:
        """Has a document's KV computed ahead after all. Raises UnknownName."""
        self.kv.set_wanted(owner, document, True)

    def stats(self) -> LibraryStats:
        """Returns counts over everything in the file."""
        model = self._tools.kv_model()
        with self._database.reading() as db:
            libraries, documents, chunks = (
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("libraries", "documents", "chunks")
            )
            owners = db.execute("SELECT count(DISTINCT owner) FROM libraries WHERE owner <> ?", (SHARED,)).fetchone()[0]
            stored = sum(self._tools.kv_files.has(row["hash"]) for row in db.execute("SELECT hash FROM kv WHERE model = ?", (model,)))
            size_bytes, hits = (db.execute(f"SELECT coalesce(sum({what}), 0) FROM {table}").fetchone()[0] for what, table in _SUMS)
        return LibraryStats(owners, libraries, documents, chunks, stored, size_bytes, hits)

    def _state(self) -> tuple[str, Callable[[str], bool]]:
        """Returns what the state of stored KV is read by."""
        return self._tools.kv_model(), self._tools.kv_files.has

    @contextmanager
    def _reader(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Waits until one more file may be read."""
        while not self._readers.acquire(timeout=0.1):
            if cancelled():
                raise Cancelled("Stopped while other files were read; nothing of this one is kept.")
        try:
            yield
        finally:
            self._readers.release()

    @contextmanager
    def _seen(self, owner: str) -> Iterator[sqlite3.Connection]:
        """Notes that the owner is there, and reads."""
        self._owners.saw(owner)
        with self._database.reading() as db:
            yield db

    @contextmanager
    def _dropping(self) -> Iterator[tuple[sqlite3.Connection, set[kv_rows.HeldKv]]]:
        """Holds a transaction; once it is kept, the KV that the body put into the set is dropped where nobody uses it."""
        held: set[kv_rows.HeldKv] = set()
        with self._database.writing() as db:
            yield db, held
            unused = kv_rows.unused_kv(db, held)
        self._database.empty_log()
        self._tools.kv_files.drop(unused)


def _counted(chunks: Sequence[object]) -> str:
    return f"{len(chunks):,} chunk{'' if len(chunks) == 1 else 's'}"
