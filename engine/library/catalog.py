"""Rows of libraries, documents and owners. Functions take a connection inside a transaction; who may do what is not theirs."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.errors import UnknownName
from engine.library.chunking import CutChunk
from engine.library.fulltext import indexed, table_sql
from engine.library.types import SHARED, LibraryInfo


class NewDocument(NamedTuple):
    """What is stored of a document beside its chunks; fields as in `DocumentInfo`."""

    document_id: str
    name: str
    title: str
    kind: str
    unit: str
    num_units: int
    size_bytes: int
    created_s: float
    wants_kv: bool


class OwnerTotals(NamedTuple):
    """What an owner has."""

    num_libraries: int
    num_documents: int
    size_bytes: int


def text_table(library_id: int) -> str:
    """Returns the name of a library's full-text table."""
    return f"text_{int(library_id)}"


def find_library(db: sqlite3.Connection, owner: str, name: str) -> sqlite3.Row:
    """Returns a library that the owner sees. Raises UnknownName, listing what they see."""
    found = db.execute("SELECT * FROM libraries WHERE name = ? AND owner IN (?, ?)", (name, owner, SHARED)).fetchone()
    if found is None:
        known = [
            row["name"] for row in db.execute("SELECT name FROM libraries WHERE owner IN (?, ?) ORDER BY owner DESC, id", (owner, SHARED))
        ]
        raise UnknownName(f"Unknown library {name[:80]!r}; known ones are: {', '.join(known) or 'none'}.")
    return found


def list_libraries(db: sqlite3.Connection, owner: str) -> tuple[LibraryInfo, ...]:
    """Returns the libraries that the owner sees, their own first."""
    rows = db.execute(
        "SELECT l.*, count(d.id) AS num_documents, coalesce(sum(d.size_bytes), 0) AS size_bytes,"
        " (SELECT count(*) FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.library_id = l.id) AS num_chunks"
        " FROM libraries l LEFT JOIN documents d ON d.library_id = l.id WHERE l.owner IN (?, ?) GROUP BY l.id ORDER BY l.owner = ?, l.id",
        (owner, SHARED, SHARED),
    )
    return tuple(
        LibraryInfo(row["name"], row["title"], row["owner"] == SHARED, row["num_documents"], row["num_chunks"], row["size_bytes"])
        for row in rows
    )


def insert_library(db: sqlite3.Connection, owner: str, name: str, title: str, now_s: float, fingerprint: str = "") -> int:
    """Makes a library with its full-text table and returns its number."""
    values = (owner, name, title, fingerprint, now_s)
    made = db.execute("INSERT INTO libraries (owner, name, title, fingerprint, created_s) VALUES (?, ?, ?, ?, ?)", values)
    assert made.lastrowid is not None
    db.execute(table_sql(text_table(made.lastrowid)))
    return made.lastrowid


def delete_library(db: sqlite3.Connection, library_id: int) -> None:
    """Deletes a library with all that is in it."""
    db.execute(f"DROP TABLE IF EXISTS {text_table(library_id)}")
    db.execute("DELETE FROM libraries WHERE id = ?", (library_id,))


def insert_document(db: sqlite3.Connection, library_id: int, document: NewDocument, chunks: Iterable[CutChunk], ids: Sequence[str]) -> None:
    """Stores a document with its chunks, called `ids`, and their words."""
    db.execute(
        "INSERT INTO documents (id, library_id, name, title, kind, unit, num_units, size_bytes, created_s, wants_kv)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (document.document_id, library_id, *document[1:]),
    )
    for ordinal, (chunk_id, chunk) in enumerate(zip(ids, chunks, strict=True)):
        made = db.execute(
            "INSERT INTO chunks (chunk_id, document_id, ordinal, title, text, place, summary, text_hash, num_tokens)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                chunk_id,
                document.document_id,
                ordinal,
                chunk.title,
                chunk.text,
                chunk.place,
                chunk.summary,
                chunk.text_hash,
                chunk.num_tokens,
            ),
        )
        db.execute(
            f"INSERT INTO {text_table(library_id)} (rowid, title, body) VALUES (?, ?, ?)",
            (made.lastrowid, indexed(chunk.title), indexed(chunk.text)),
        )


def delete_document(db: sqlite3.Connection, library_id: int, document_id: str) -> None:
    """Deletes a document with its chunks and their words."""
    table = text_table(library_id)
    db.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT id FROM chunks WHERE document_id = ?)", (document_id,))
    # The index only marks its words as gone; putting it together anew leaves them out.
    db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
    db.execute("DELETE FROM documents WHERE id = ?", (document_id,))


def owner_totals(db: sqlite3.Connection, owner: str) -> OwnerTotals:
    """Returns what an owner has, empty libraries included."""
    return OwnerTotals(
        *db.execute(
            "SELECT count(DISTINCT l.id), count(d.id), coalesce(sum(d.size_bytes), 0)"
            " FROM libraries l LEFT JOIN documents d ON d.library_id = l.id WHERE l.owner = ?",
            (owner,),
        ).fetchone()
    )


def note_owner(db: sqlite3.Connection, owner: str, now_s: float) -> None:
    """Notes that an owner was seen."""
    db.execute("INSERT INTO owners VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET seen_s = excluded.seen_s", (owner, now_s))


def owners_unseen_since(db: sqlite3.Connection, time_s: float) -> list[str]:
    """Returns owners that nobody has seen since a Unix time."""
    return [row["owner"] for row in db.execute("SELECT owner FROM owners WHERE seen_s < ?", (time_s,))]
