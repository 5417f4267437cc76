"""Brings the scenarios into the library as shared, read-only documents, anew where they have changed."""

import sqlite3
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from engine.library.catalog import NewDocument, delete_library, insert_document, insert_library
from engine.library.chunking import CutChunk, hash_text
from engine.library.sentences import summary_of
from engine.library.types import SHARED
from engine.scenarios import Scenario

# Part of the fingerprint: raised when what is stored of a scenario changes.
_FORM = b"1"


def scenario_chunk_id(scenario: str, passage: str) -> str:
    """Returns the library's id of a scenario's passage."""
    return f"{scenario}:{passage}"


def sync_scenarios(db: sqlite3.Connection, scenarios: Iterable[Scenario], now_s: float) -> None:
    """Makes the shared libraries those of the scenarios; one whose passages are as before is left alone."""
    rows = db.execute("SELECT id, name, fingerprint FROM libraries WHERE owner = ?", (SHARED,)).fetchall()
    known = {row["name"]: row for row in rows}
    for scenario in scenarios:
        fingerprint = blake2b(_FORM + msgspec.json.encode([scenario.title, scenario.passages]), digest_size=16).hexdigest()
        row = known.pop(scenario.name, None)
        if row is not None and row["fingerprint"] == fingerprint:
            continue
        if row is not None:
            delete_library(db, row["id"])
        _insert(db, scenario, fingerprint, now_s)
    for row in known.values():
        delete_library(db, row["id"])


def _insert(db: sqlite3.Connection, scenario: Scenario, fingerprint: str, now_s: float) -> None:
    library_id = insert_library(db, SHARED, scenario.name, scenario.title, now_s, fingerprint)
    size_bytes = sum(len(passage.text.encode()) for passage in scenario.passages)
    document = NewDocument(scenario.name, scenario.title, scenario.title, "scenario", "", 0, size_bytes, now_s, wants_kv=False)
    chunks = [CutChunk(p.title, p.text, "", summary_of(p.text), hash_text(p.title, p.text), None) for p in scenario.passages]
    insert_document(db, library_id, document, chunks, [scenario_chunk_id(scenario.name, p.id) for p in scenario.passages])
