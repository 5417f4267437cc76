"""The tables of the library, and how a file of an older version gets them. A step that was published is never changed."""

import sqlite3
from collections.abc import Sequence

from engine.library.catalog import text_table
from engine.library.database import Migration
from engine.library.fulltext import indexed, table_sql


def _first_tables(db: sqlite3.Connection) -> None:
    """Version 1: libraries, documents and chunks. Each library has a full-text table of its own, `text_<id>`, so that
    ranking in one never depends on the texts of another."""
    db.execute(
        "CREATE TABLE libraries (id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL,"
        " fingerprint TEXT NOT NULL DEFAULT '', created_s REAL NOT NULL, UNIQUE (owner, name))"
    )
    db.execute(
        "CREATE TABLE documents (id TEXT PRIMARY KEY, library_id INTEGER NOT NULL REFERENCES libraries ON DELETE CASCADE,"
        " name TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL, unit TEXT NOT NULL, num_units INTEGER NOT NULL,"
        " size_bytes INTEGER NOT NULL, created_s REAL NOT NULL)"
    )
    db.execute("CREATE INDEX documents_by_library ON documents (library_id)")
    db.execute(
        "CREATE TABLE chunks (id INTEGER PRIMARY KEY AUTOINCREMENT, chunk_id TEXT NOT NULL UNIQUE,"
        " document_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE, ordinal INTEGER NOT NULL, title TEXT NOT NULL,"
        " text TEXT NOT NULL, place TEXT NOT NULL, summary TEXT NOT NULL, text_hash TEXT NOT NULL, num_tokens INTEGER,"
        " hits INTEGER NOT NULL DEFAULT 0, last_use_s REAL, UNIQUE (document_id, ordinal))"
    )
    db.execute("CREATE INDEX chunks_by_text ON chunks (text_hash)")


def _add_kv(db: sqlite3.Connection) -> None:
    """Version 2: where a chunk's KV is stored, by model, and whether a document's KV is computed ahead."""
    db.execute(
        "CREATE TABLE kv (chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE, model TEXT NOT NULL, hash TEXT NOT NULL,"
        " size_bytes INTEGER NOT NULL, PRIMARY KEY (chunk, model)) WITHOUT ROWID"
    )
    db.execute("CREATE INDEX kv_by_hash ON kv (hash)")
    db.execute("ALTER TABLE documents ADD COLUMN wants_kv INTEGER NOT NULL DEFAULT 0")


def _add_owners_and_vectors(db: sqlite3.Connection) -> None:
    """Version 3: when an owner was last seen, and vectors of chunks for dense retrieval, by embedding model."""
    db.execute("CREATE TABLE owners (owner TEXT PRIMARY KEY, seen_s REAL NOT NULL) WITHOUT ROWID")
    db.execute("INSERT INTO owners SELECT owner, max(created_s) FROM libraries WHERE owner <> '' GROUP BY owner")
    db.execute(
        "CREATE TABLE vectors (chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE, model TEXT NOT NULL, vector BLOB NOT NULL,"
        " PRIMARY KEY (chunk, model)) WITHOUT ROWID"
    )


def _fold_words(db: sqlite3.Connection) -> None:
    """Version 4: words are indexed folded, so that one spelling finds another."""
    for (library_id,) in db.execute("SELECT id FROM libraries").fetchall():
        table = text_table(library_id)
        db.execute(f"DROP TABLE IF EXISTS {table}")
        db.execute(table_sql(table))
        rows = db.execute(
            "SELECT c.id, c.title, c.text FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.library_id = ?", (library_id,)
        ).fetchall()
        words = [(row[0], indexed(row[1]), indexed(row[2])) for row in rows]
        db.executemany(f"INSERT INTO {table} (rowid, title, body) VALUES (?, ?, ?)", words)


MIGRATIONS: Sequence[Migration] = (_first_tables, _add_kv, _add_owners_and_vectors, _fold_words)
