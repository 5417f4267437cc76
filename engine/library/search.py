"""Search in one library: bm25 over words, where an embedding model is given merged with nearness of vectors."""

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.library.catalog import text_table
from engine.library.fulltext import any_of, inverse_frequency, part_of_compound, query_terms

# Reciprocal rank fusion: 1 / (60 + rank), summed over the lists (Cormack, Clarke and Buettcher, SIGIR 2009).
RRF_OFFSET = 60
# How far down each list is looked when two are merged.
POOL = 50
# Of how many words that stand nowhere compounds are looked for, and how many compounds of each count.
NUM_PARTS, NUM_COMPOUNDS = 4, 8


class Hit(NamedTuple):
    """A row that was found; `relevance` 0..1 and the ranks as in `Found`."""

    row_id: int
    relevance: float
    bm25_rank: int | None
    dense_rank: int | None


class Scored(NamedTuple):
    """A row and its bm25 score as a share, see `Found`."""

    row_id: int
    share: float


def search_words(db: sqlite3.Connection, library_id: int, query: str, num: int, documents: Sequence[str] | None) -> list[Scored]:
    """Returns the best rows by bm25 (k1 = 1.2, b = .75, FTS5's own), best first, ties in reading order."""
    terms, table = query_terms(query), text_table(library_id)
    if not terms:
        return []
    num_rows = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    counts = [_count(db, table, term) for term in terms]
    compounds = _compounds(db, table, [term for term, count in zip(terms, counts, strict=True) if not count])
    counts += [_count(db, table, expression) for expression in compounds]
    # What a chunk of average length scores that holds every word once; words that no chunk holds are left out.
    whole = sum(inverse_frequency(num_rows, count) for count in counts if count)
    chosen, values = _within("rowid", documents)
    rows = db.execute(
        f"SELECT rowid, -bm25({table}) AS score FROM {table} WHERE {table} MATCH ?{chosen} ORDER BY score DESC, rowid LIMIT ?",
        (" OR ".join((*terms, *compounds)), *values, num),
    )
    return [Scored(row["rowid"], min(1.0, row["score"] / whole)) for row in rows]


def _count(db: sqlite3.Connection, table: str, expression: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (expression,)).fetchone()[0])


def _compounds(db: sqlite3.Connection, table: str, missing: Sequence[str]) -> list[str]:
    """Returns expressions for words that stand nowhere alone but within others: "Bahnhof" is found in "Hauptbahnhof"."""
    parts = [part for term in missing if (part := part_of_compound(term))][:NUM_PARTS]
    if not parts:
        return []
    # Lives as long as the transaction that reads.
    db.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.words_of_{table} USING fts5vocab(main, {table}, row)")
    expressions = []
    for part in parts:
        query = f"SELECT term FROM temp.words_of_{table} WHERE instr(term, ?) ORDER BY length(term), term LIMIT ?"
        stems = [row["term"] for row in db.execute(query, (part, NUM_COMPOUNDS))]
        expressions += [any_of(stems)] if stems else []
    return expressions


def search_vectors(
    db: sqlite3.Connection, library_id: int, vector: np.ndarray, model: str, num: int, documents: Sequence[str] | None
) -> list[int]:
    """Returns the rows whose vectors are nearest to a unit vector float32 [d] by cosine, best first, ties in reading order."""
    chosen, values = _within("c.id", documents)
    rows = db.execute(
        "SELECT c.id AS rowid, v.vector FROM vectors v JOIN chunks c ON c.id = v.chunk JOIN documents d ON d.id = c.document_id"
        f" WHERE v.model = ? AND d.library_id = ?{chosen} ORDER BY c.id",
        (model, library_id, *values),
    ).fetchall()
    if not rows:
        return []
    matrix = np.frombuffer(b"".join(row["vector"] for row in rows), dtype=np.float32).reshape(len(rows), -1)
    order = np.argsort(-(matrix @ vector), kind="stable")[:num]
    return [rows[i]["rowid"] for i in order]


def merge(words: Sequence[Scored], near: Sequence[int]) -> list[Hit]:
    """Returns both lists as one by reciprocal rank, best first; `near` empty leaves the order of words alone."""
    by_words = {scored.row_id: rank for rank, scored in enumerate(words, 1)}
    if not near:
        return [Hit(scored.row_id, scored.share, by_words[scored.row_id], None) for scored in words]
    by_nearness = {row_id: rank for rank, row_id in enumerate(near, 1)}
    best = 2 / (RRF_OFFSET + 1)

    def score(row_id: int) -> float:
        ranks = (found.get(row_id) for found in (by_words, by_nearness))
        return sum(1 / (RRF_OFFSET + rank) for rank in ranks if rank is not None) / best

    merged = sorted({*by_words, *by_nearness}, key=lambda row_id: (-score(row_id), row_id))
    return [Hit(row_id, score(row_id), by_words.get(row_id), by_nearness.get(row_id)) for row_id in merged]


def _within(column: str, documents: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    """Returns a condition on a column of row numbers that holds inside the given documents, and its values."""
    if documents is None:
        return "", ()
    condition = f" AND {column} IN (SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?)))"
    return condition, (json.dumps(list(documents)),)
