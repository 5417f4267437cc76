"""What the library knows of KV and vectors that are computed ahead: what is wanted, what is there, why it rests."""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from engine.library import kv_rows, rows
from engine.library.database import Database
from engine.library.tools import LibraryTools
from engine.library.types import KvJob, KvProgress, TextJob


class UsedChunk(NamedTuple):
    """A chunk that a request used; kv_hash "" where its KV is not that which is computed ahead."""

    chunk_id: str
    kv_hash: str
    size_bytes: int
    num_tokens: int


class KvLedger:
    """The background computation's view of a library. Safe to call from many threads; raises LibraryUnavailable."""

    def __init__(self, database: Database, tools: LibraryTools) -> None:
        self._database, self._tools = database, tools
        self._rest = ""

    def wants_kv(self) -> bool:
        """Returns whether any document wants its KV computed ahead, be it there or not; for that no model is needed."""
        with self._database.reading() as db:
            return db.execute("SELECT 1 FROM documents WHERE wants_kv LIMIT 1").fetchone() is not None

    def wanted(self, model: str, num: int = 1) -> tuple[KvJob, ...]:
        """Returns the next chunks whose KV is to be computed for a model; documents take turns."""
        with self._database.reading() as db:
            return kv_rows.wanted_jobs(db, model, num)

    def set(self, model: str, chunk_id: str, kv_hash: str, size_bytes: int, num_tokens: int | None = None) -> bool:
        """Notes where a chunk's KV for a model is stored; returns False where the chunk is gone by now."""
        with self._database.writing() as db:
            return kv_rows.set_kv(db, chunk_id, model, kv_hash, size_bytes, num_tokens)

    def note_use(self, model: str, used: Iterable[UsedChunk]) -> None:
        """Counts a use of each chunk and notes where its KV is; unknown ids are passed over."""
        now_s = time.time()
        with self._database.writing() as db:
            for chunk in used:
                db.execute("UPDATE chunks SET hits = hits + 1, last_use_s = ? WHERE chunk_id = ?", (now_s, chunk.chunk_id))
                if chunk.kv_hash:
                    kv_rows.set_kv(db, chunk.chunk_id, model, chunk.kv_hash, chunk.size_bytes, chunk.num_tokens)

    def drop_unused(self, kv_hash: str, text_hash: str) -> None:
        """Removes a KV file that no chunk uses, as it was computed for one that is gone."""
        with self._database.reading() as db:
            unused = kv_rows.unused_kv(db, [kv_rows.HeldKv(kv_hash, text_hash)])
        self._tools.kv_files.drop(unused)

    def progress(self, owner: str) -> KvProgress:
        """Returns how far the KV of the owner's documents is."""
        with self._database.reading() as db:
            num_chunks, num_done = kv_rows.count_wanted(db, self._tools.kv_model(), owner)
        if num_done == num_chunks:
            told = f"The KV of all {num_chunks} chunks is computed." if num_chunks else "No document waits for its KV."
            return KvProgress(num_chunks, num_done, told, False)
        return KvProgress(num_chunks, num_done, self._rest or f"Computing KV: {num_done} of {num_chunks} chunks.", bool(self._rest))

    def rest(self, reason: str) -> None:
        """Says in one sentence why nothing is computed though chunks are left; "" when it goes on."""
        self._rest = reason

    def set_wanted(self, owner: str, document: str, wanted: bool) -> None:
        """Has a document's KV computed ahead, or no longer. Raises UnknownName."""
        with self._database.writing() as db:
            rows.find_document(db, owner, document)
            db.execute("UPDATE documents SET wants_kv = ? WHERE id = ?", (wanted, document))

    def give_up(self, chunk_id: str) -> None:
        """Has the KV of a chunk's document no longer computed ahead, as it cannot be."""
        with self._database.writing() as db:
            db.execute("UPDATE documents SET wants_kv = 0 WHERE id = (SELECT document_id FROM chunks WHERE chunk_id = ?)", (chunk_id,))

    def texts_wanted(self, num: int) -> tuple[TextJob, ...]:
        """Returns the next chunks without a vector of the embedding model, none where there is no such model."""
        if self._tools.embedder is None:
            return ()
        with self._database.reading() as db:
            found = db.execute(
                "SELECT c.id, c.title, c.text FROM chunks c LEFT JOIN vectors v ON v.chunk = c.id AND v.model = ?"
                " WHERE v.vector IS NULL ORDER BY c.id LIMIT ?",
                (self._tools.embedder.name, num),
            )
            return tuple(TextJob(row["id"], f"{row['title']}. {row['text']}" if row["title"] else row["text"]) for row in found)

    def embed(self, jobs: tuple[TextJob, ...]) -> None:
        """Computes and notes the vectors of chunks. Raises ModelUnavailable."""
        embedder = self._tools.embedder
        assert embedder is not None
        vectors = embedder.embed([job.text for job in jobs]).astype(np.float32)
        with self._database.writing() as db:
            for job, vector in zip(jobs, vectors, strict=True):
                # The chunk may have been deleted meanwhile.
                db.execute(
                    "INSERT OR REPLACE INTO vectors SELECT id, ?, ? FROM chunks WHERE id = ?", (embedder.name, vector.tobytes(), job.row_id)
                )
