"""Reads documents and chunks as the values that are shown, with the state of their stored KV."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from engine.errors import UnknownName
from engine.library.types import SHARED, ChunkInfo, DocumentInfo, KvState

HasKv = Callable[[str], bool]
_CHUNK = (
    "SELECT c.*, d.name AS document, d.wants_kv, l.name AS library, kv.hash AS kv_hash, coalesce(kv.size_bytes, 0) AS kv_size_bytes"
    " FROM chunks c JOIN documents d ON d.id = c.document_id JOIN libraries l ON l.id = d.library_id"
    " LEFT JOIN kv ON kv.chunk = c.id AND kv.model = ?"
)
_DOCUMENT = (
    "SELECT d.*, l.name AS library, l.owner, count(c.id) AS num_chunks, coalesce(sum(c.num_tokens), 0) AS num_tokens"
    " FROM documents d JOIN libraries l ON l.id = d.library_id LEFT JOIN chunks c ON c.document_id = d.id"
)


def find_document(db: sqlite3.Connection, owner: str, document_id: str) -> sqlite3.Row:
    """Returns the row of a document that the owner sees, with its library's `library_id` and `owner`. Raises UnknownName."""
    found = db.execute(
        "SELECT d.*, l.owner FROM documents d JOIN libraries l ON l.id = d.library_id WHERE d.id = ? AND l.owner IN (?, ?)",
        (document_id, owner, SHARED),
    ).fetchone()
    if found is None:
        raise UnknownName(f"Unknown document {document_id[:80]!r}; it was deleted or is not yours.")
    return found


def read_documents(db: sqlite3.Connection, where: str, values: Sequence[object], model: str, has_kv: HasKv) -> tuple[DocumentInfo, ...]:
    """Returns documents, oldest first, that meet a condition of our own making."""
    rows = db.execute(f"{_DOCUMENT} WHERE {where} GROUP BY d.id ORDER BY d.rowid", tuple(values)).fetchall()
    ids = json.dumps([row["id"] for row in rows])
    known, stored = Counter[str](), Counter[str]()
    for kv in db.execute(
        "SELECT c.document_id, kv.hash FROM kv JOIN chunks c ON c.id = kv.chunk"
        " WHERE kv.model = ? AND c.document_id IN (SELECT value FROM json_each(?))",
        (model, ids),
    ):
        known[kv["document_id"]] += 1
        stored[kv["document_id"]] += has_kv(kv["hash"])
    return tuple(
        DocumentInfo(
            document_id=row["id"],
            library=row["library"],
            name=row["name"],
            title=row["title"],
            kind=row["kind"],
            unit=row["unit"],
            num_units=row["num_units"],
            size_bytes=row["size_bytes"],
            num_chunks=row["num_chunks"],
            num_tokens=row["num_tokens"],
            num_stored=stored[row["id"]],
            is_waiting=bool(row["wants_kv"]) and known[row["id"]] < row["num_chunks"],
            is_shared=row["owner"] == SHARED,
            created=datetime.fromtimestamp(row["created_s"], UTC).isoformat(timespec="seconds"),
        )
        for row in rows
    )


def read_chunks(
    db: sqlite3.Connection, where: str, values: Sequence[object], model: str, has_kv: HasKv, num: int | None = None
) -> tuple[ChunkInfo, ...]:
    """Returns chunks in reading order that meet a condition of our own making, the first `num` where that is given."""
    bound = -1 if num is None else num
    rows = db.execute(f"{_CHUNK} WHERE {where} ORDER BY d.rowid, c.ordinal LIMIT ?", (model, *values, bound))
    return tuple(_chunk_info(row, has_kv) for row in rows)


def read_chunk_rows(db: sqlite3.Connection, row_ids: Iterable[int], model: str, has_kv: HasKv) -> dict[int, ChunkInfo]:
    """Returns chunks by their row's number."""
    rows = db.execute(f"{_CHUNK} WHERE c.id IN (SELECT value FROM json_each(?))", (model, json.dumps(list(row_ids))))
    return {row["id"]: _chunk_info(row, has_kv) for row in rows}


def _chunk_info(row: sqlite3.Row, has_kv: HasKv) -> ChunkInfo:
    return ChunkInfo(
        chunk_id=row["chunk_id"],
        document_id=row["document_id"],
        document=row["document"],
        library=row["library"],
        ordinal=row["ordinal"],
        title=row["title"],
        text=row["text"],
        place=row["place"],
        summary=row["summary"],
        text_hash=row["text_hash"],
        num_tokens=row["num_tokens"],
        kv_hash=row["kv_hash"],
        kv_size_bytes=row["kv_size_bytes"],
        kv_state=_kv_state(row, has_kv),
        hits=row["hits"],
        last_use_s=row["last_use_s"],
    )


def _kv_state(row: sqlite3.Row, has_kv: HasKv) -> KvState:
    if row["kv_hash"] is None:
        return "waiting" if row["wants_kv"] else "none"
    return "stored" if has_kv(row["kv_hash"]) else "dropped"
