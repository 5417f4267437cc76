"""Rows on stored KV: whose is still wanted, where it lies, and which of it nobody uses any more."""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from engine.library.types import KvJob
from engine.types import Chunk

_WANTED = (
    " FROM chunks c JOIN documents d ON d.id = c.document_id JOIN libraries l ON l.id = d.library_id"
    " LEFT JOIN kv ON kv.chunk = c.id AND kv.model = ? WHERE d.wants_kv"
)


class HeldKv(NamedTuple):
    """A stored KV that chunks about to be deleted have, and the text it was computed from."""

    kv_hash: str
    text_hash: str


def wanted_jobs(db: sqlite3.Connection, model: str, num: int) -> tuple[KvJob, ...]:
    """Returns the next chunks without KV of the document that has the fewest with it, so that a short one need not wait for a long."""
    chosen = db.execute(
        f"SELECT d.id, d.name, count(*) AS num_chunks{_WANTED}"
        " GROUP BY d.id HAVING count(kv.hash) < count(*) ORDER BY count(kv.hash), d.rowid LIMIT 1",
        (model,),
    ).fetchone()
    if chosen is None:
        return ()
    rows = db.execute(f"SELECT c.*{_WANTED} AND kv.hash IS NULL AND d.id = ? ORDER BY c.ordinal LIMIT ?", (model, chosen["id"], num))
    return tuple(
        KvJob(
            chunk=Chunk(row["chunk_id"], row["title"], row["text"]),
            text_hash=row["text_hash"],
            document=chosen["name"],
            ordinal=row["ordinal"],
            num_chunks=chosen["num_chunks"],
        )
        for row in rows
    )


def count_wanted(db: sqlite3.Connection, model: str, owner: str) -> tuple[int, int]:
    """Returns how many chunks of an owner want their KV computed ahead, and how many of them have it."""
    found = db.execute(f"SELECT count(*), count(kv.hash){_WANTED} AND l.owner = ?", (model, owner)).fetchone()
    return found[0], found[1]


def set_kv(db: sqlite3.Connection, chunk_id: str, model: str, kv_hash: str, size_bytes: int, num_tokens: int | None) -> bool:
    """Notes a chunk's KV and returns whether the chunk is there."""
    row = db.execute("SELECT id FROM chunks WHERE chunk_id = ?", (chunk_id,)).fetchone()
    if row is None:
        return False
    db.execute(
        "INSERT INTO kv VALUES (?, ?, ?, ?)"
        " ON CONFLICT (chunk, model) DO UPDATE SET hash = excluded.hash, size_bytes = excluded.size_bytes",
        (row["id"], model, kv_hash, size_bytes),
    )
    if num_tokens is not None:
        db.execute("UPDATE chunks SET num_tokens = ? WHERE id = ?", (num_tokens, row["id"]))
    return True


def held_kv(db: sqlite3.Connection, document_ids: Iterable[str]) -> set[HeldKv]:
    """Returns the KV of all models that documents have."""
    return {
        HeldKv(row["hash"], row["text_hash"])
        for document_id in document_ids
        for row in db.execute(
            "SELECT kv.hash, c.text_hash FROM kv JOIN chunks c ON c.id = kv.chunk WHERE c.document_id = ?", (document_id,)
        )
    }


def unused_kv(db: sqlite3.Connection, held: Iterable[HeldKv]) -> list[str]:
    """Returns the hashes that no chunk has now, sorted; a chunk of the same text uses it, computed ahead or not."""
    unused = []
    for kv in held:
        in_use = db.execute(
            "SELECT EXISTS (SELECT 1 FROM kv WHERE hash = ?) OR EXISTS (SELECT 1 FROM chunks WHERE text_hash = ?)", kv
        ).fetchone()[0]
        if not in_use:
            unused.append(kv.kv_hash)
    return sorted(set(unused))
