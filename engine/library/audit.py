"""Checks a library's file: SQLite's own checks, words against rows, rows against each other. Changes nothing."""

import sqlite3
from pathlib import Path
from typing import NamedTuple

from engine.library.catalog import text_table
from engine.library.chunking import hash_text
from engine.library.migrations import MIGRATIONS

BUSY_S = 30.0


class LibraryAudit(NamedTuple):
    """What was counted, and one sentence for each thing that is wrong."""

    num_documents: int
    num_chunks: int
    problems: tuple[str, ...]


def audit_library(path: Path) -> LibraryAudit:
    """Returns what is wrong with a library's file; one that is not there has nothing wrong."""
    if not path.exists():
        return LibraryAudit(0, 0, ())
    try:
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    except sqlite3.Error as error:
        return LibraryAudit(0, 0, (f"{path.name}: cannot be opened ({error})",))
    try:
        return _audit(db, path.name)
    except sqlite3.Error as error:
        return LibraryAudit(0, 0, (f"{path.name}: cannot be read ({error})",))
    finally:
        db.close()


def _audit(db: sqlite3.Connection, name: str) -> LibraryAudit:
    problems = [f"{name}: {row[0]}" for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != len(MIGRATIONS):
        # Version 0 is a file that was made and not yet filled; an older one is brought up to date when it is next used.
        later = [f"{name}: version {version} is later than {len(MIGRATIONS)}"] if version > len(MIGRATIONS) else []
        return LibraryAudit(0, 0, (*problems, *later))
    # One state of the file; FTS5's check counts as writing, so what it holds is given back.
    db.execute("BEGIN IMMEDIATE")
    try:
        problems += [f"{name}: a row of {row[0]} refers to a missing row of {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
        problems += [f"{name}: {problem}" for problem in [*_word_problems(db), *_row_problems(db)]]
        counts = (db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("documents", "chunks"))
        return LibraryAudit(*counts, tuple(problems))
    finally:
        db.execute("ROLLBACK")


def _word_problems(db: sqlite3.Connection) -> list[str]:
    """Compares every full-text table with its rows: the same numbers, and an index that holds the words of the rows."""
    problems = []
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'text_[0-9]*'")}
    tables = {name for name in tables if name.removeprefix("text_").isdigit()}
    for (library_id,) in db.execute("SELECT id FROM libraries").fetchall():
        table = text_table(library_id)
        if table not in tables:
            problems.append(f"library {library_id} has no index of words")
            continue
        tables.remove(table)
        try:
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except sqlite3.DatabaseError:
            problems.append(f"{table} does not hold the words of its rows")
        chunks = "SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.library_id = ?"
        missing = db.execute(f"SELECT count(*) FROM ({chunks} EXCEPT SELECT rowid FROM {table})", (library_id,)).fetchone()[0]
        stray = db.execute(f"SELECT count(*) FROM (SELECT rowid FROM {table} EXCEPT {chunks})", (library_id,)).fetchone()[0]
        problems += [f"{table} lacks {missing} chunks"] * bool(missing) + [f"{table} has {stray} rows without a chunk"] * bool(stray)
    return problems + [f"{table} belongs to no library" for table in sorted(tables)]


def _row_problems(db: sqlite3.Connection) -> list[str]:
    """Looks for documents without chunks, gaps in their order, and texts that are not what their hash says."""
    problems = [
        f"document {row[0]} has {row[1]} chunks, the last is number {row[2]}"
        for row in db.execute(
            "SELECT d.id, count(c.id) AS num, coalesce(max(c.ordinal), -1) AS last FROM documents d"
            " LEFT JOIN chunks c ON c.document_id = d.id GROUP BY d.id HAVING num = 0 OR last <> num - 1"
        )
    ]
    for chunk_id, title, text, text_hash in db.execute("SELECT chunk_id, title, text, text_hash FROM chunks"):
        if hash_text(title, text) != text_hash:
            problems.append(f"the text of chunk {chunk_id} is not what was stored")
    return problems
