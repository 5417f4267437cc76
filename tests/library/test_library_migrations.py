"""A file of any older version is brought up to date with all that is in it; a later one is left alone."""

import sqlite3

import pytest
from library_samples import open_library

from engine.errors import LibraryUnavailable
from engine.library.audit import audit_library
from engine.library.chunking import hash_text
from engine.library.fulltext import table_sql
from engine.library.library import FILE_NAME
from engine.library.migrations import MIGRATIONS

ME = "visitor-1"
TEXT = "The lamp of Merrow Point was lit in 1871."


def make_old(path, version: int) -> None:
    """Writes a library of an older version with one document in it."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    for migrate in MIGRATIONS[:version]:
        migrate(db)
    db.execute(f"PRAGMA user_version = {version}")
    # The columns that version 1 had; later ones have their defaults. The time is far ahead, so that nothing is swept.
    db.execute("INSERT INTO libraries (id, owner, name, title, created_s) VALUES (1, ?, 'Old', 'Old', 4e9)", (ME,))
    db.execute(table_sql("text_1"))
    db.execute(
        "INSERT INTO documents (id, library_id, name, title, kind, unit, num_units, size_bytes, created_s)"
        " VALUES ('d1', 1, 'lamp.txt', '', 'txt', '', 0, 41, 4e9)"
    )
    db.execute(
        "INSERT INTO chunks (id, chunk_id, document_id, ordinal, title, text, place, summary, text_hash, num_tokens)"
        " VALUES (1, 'd1-0000', 'd1', 0, '', ?, '', ?, ?, 9)",
        (TEXT, TEXT, hash_text("", TEXT)),
    )
    db.execute("INSERT INTO text_1 (rowid, title, body) VALUES (1, '', ?)", (TEXT,))
    if version >= 2:
        db.execute("INSERT INTO kv VALUES (1, 'tiny', ?, 100)", ("a" * 32,))
    if version >= 3:
        db.execute("INSERT INTO owners VALUES (?, 4e9)", (ME,))
    db.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_an_older_file_keeps_its_documents(tmp_path, version):
    make_old(tmp_path / FILE_NAME, version)
    library = open_library(tmp_path, kv_model=lambda: "tiny")
    assert library.documents(ME, "Old")[0].num_tokens == 9
    found = library.search(ME, "Old", "lamp")[0]
    assert found.info.text == TEXT and found.info.kv_hash == ("a" * 32 if version >= 2 else None)
    assert library.add(ME, "Old", "more.txt", b"Another lamp.").is_waiting
    library.close()
    db = sqlite3.connect(tmp_path / FILE_NAME)
    assert db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert db.execute("SELECT count(*) FROM owners").fetchone()[0] == 1
    db.close()
    assert audit_library(tmp_path / FILE_NAME).problems == ()


def test_words_of_an_older_file_are_found_in_other_spellings(tmp_path):
    make_old(tmp_path / FILE_NAME, 3)
    db = sqlite3.connect(tmp_path / FILE_NAME)
    text = "Łódź has a lamp."
    db.execute("UPDATE chunks SET text = ?, text_hash = ?", (text, hash_text("", text)))
    db.execute("UPDATE text_1 SET body = ?", (text,))
    db.commit()
    db.close()
    library = open_library(tmp_path)
    assert [hit.info.text for hit in library.search(ME, "Old", "lodz")] == [text]


def test_migrated_and_new_files_have_the_same_tables(tmp_path):
    def tables(path) -> set[str]:
        db = sqlite3.connect(path)
        found = {row[0] for row in db.execute("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'text%' AND sql IS NOT NULL")}
        db.close()
        return found

    open_library(tmp_path / "new").close()
    for version in range(1, len(MIGRATIONS)):
        (tmp_path / str(version)).mkdir()
        make_old(tmp_path / str(version) / FILE_NAME, version)
        open_library(tmp_path / str(version)).close()
        assert tables(tmp_path / str(version) / FILE_NAME) == tables(tmp_path / "new" / FILE_NAME)


def test_a_failed_migration_changes_nothing(tmp_path, monkeypatch):
    make_old(tmp_path / FILE_NAME, 1)

    def fails(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE half (id INTEGER)")
        db.execute("this is not SQL")

    monkeypatch.setattr("engine.library.library.MIGRATIONS", (*MIGRATIONS[:2], fails))
    with pytest.raises(LibraryUnavailable):
        open_library(tmp_path)
    db = sqlite3.connect(tmp_path / FILE_NAME)
    assert db.execute("PRAGMA user_version").fetchone()[0] == 1
    assert not db.execute("SELECT 1 FROM sqlite_schema WHERE name IN ('half', 'kv')").fetchall()
    db.close()


def test_a_later_version_is_left_alone(tmp_path):
    open_library(tmp_path).close()
    db = sqlite3.connect(tmp_path / FILE_NAME)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(LibraryUnavailable, match="use the newer program"):
        open_library(tmp_path)
    assert "later" in audit_library(tmp_path / FILE_NAME).problems[0]
