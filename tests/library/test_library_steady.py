"""What can go wrong around the file: a full disk, a lock held too long, damage, two processes at once."""

import multiprocessing
import sqlite3

import pytest
from library_samples import TEXT, make_text, open_library

from engine.errors import LibraryUnavailable
from engine.library.audit import audit_library
from engine.library.database import Database
from engine.library.library import FILE_NAME
from engine.library.migrations import MIGRATIONS
from engine.scenarios import load_scenarios

ME = "visitor-1"


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path):
    library = open_library(tmp_path)
    library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    connection = library._database._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    with pytest.raises(LibraryUnavailable, match="free some space"):
        library.add(ME, "Lamps", "big.txt", make_text(1, 2000).encode())
    assert [info.name for info in library.documents(ME, "Lamps")] == ["lamp.txt"] and library.search(ME, "Lamps", "lamp")
    connection.execute("PRAGMA max_page_count = 1073741823")
    assert library.add(ME, "Lamps", "big.txt", make_text(1, 2000).encode()).num_chunks > 50
    library.close()
    assert audit_library(tmp_path / FILE_NAME).problems == ()


def test_a_lock_that_is_held_too_long_is_one_sentence(tmp_path):
    open_library(tmp_path).close()
    holder = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    waiting = Database(tmp_path / FILE_NAME, MIGRATIONS, busy_s=0.1)
    with pytest.raises(LibraryUnavailable, match="in use by another process"), waiting.writing():
        pass
    with waiting.reading() as db:
        assert db.execute("SELECT count(*) FROM libraries").fetchone()[0] == len(load_scenarios())
    holder.execute("ROLLBACK")
    with waiting.writing() as db:
        db.execute("DELETE FROM owners")


@pytest.mark.parametrize("damage", ["text", "middle", "folder"])
def test_a_damaged_file_is_one_sentence(tmp_path, damage):
    library = open_library(tmp_path / "library")
    library.add(ME, "Lamps", "lamp.txt", make_text(1, 300).encode())
    library.close()
    path = tmp_path / "library" / FILE_NAME
    match damage:
        case "text":
            path.write_bytes(b"not a database at all" * 200)
        case "middle":
            data = bytearray(path.read_bytes())
            data[4096 * 2 :] = b"\xff" * (len(data) - 4096 * 2)
            path.write_bytes(data)
        case "folder":
            path.unlink()
            path.mkdir()
    assert damage == "folder" or audit_library(path).problems
    with pytest.raises(LibraryUnavailable) as told:
        open_library(tmp_path / "library").search(ME, "Lamps", "lamp")
    assert str(told.value).endswith(".") and "\n" not in str(told.value)


def test_a_failing_transaction_is_undone(tmp_path):
    database = Database(tmp_path / "a.sqlite", MIGRATIONS)
    with pytest.raises(LibraryUnavailable), database.writing() as db:
        db.execute("INSERT INTO owners VALUES ('x', 1.0)")
        db.execute("INSERT INTO owners VALUES ('x', 2.0)")
    with pytest.raises(KeyError), database.writing() as db:
        db.execute("INSERT INTO owners VALUES ('y', 1.0)")
        raise KeyError
    with database.reading() as db:
        assert db.execute("SELECT count(*) FROM owners").fetchone()[0] == 0


def work(folder, owner: str, wait) -> None:
    """Adds, searches and removes, in step with the other process."""
    wait()
    library = open_library(folder)
    for i in range(6):
        document = library.add(owner, "Notes", f"{i}.txt", make_text(i, 30).encode())
        assert library.search(owner, "Notes", f"Note {i}-3 says", documents=[document.document_id])
        if i % 3 == 0:
            library.remove(owner, document.document_id)
    assert len(library.documents(owner, "Notes")) == 4
    library.close()


def test_two_processes_share_a_folder(tmp_path, monkeypatch):
    # Both make the file at the same time.
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(2, timeout=60)
    others = [spawn.Process(target=work, args=(tmp_path, f"visitor-{i}", barrier.wait), daemon=True) for i in range(2)]
    for process in others:
        process.start()
    for process in others:
        process.join(timeout=100)
        assert process.exitcode == 0
    audit = audit_library(tmp_path / FILE_NAME)
    assert audit.problems == () and audit.num_documents == 8 + len(load_scenarios())
