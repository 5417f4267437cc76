"""What happens to the library's file behind the program's back, and what is left in it of what was deleted."""

import os
import shutil
import sqlite3

import pytest

from engine.errors import BadRequest, LibraryUnavailable
from engine.library.database import Database
from engine.library.library import FILE_NAME, Library
from engine.library.migrations import MIGRATIONS

SECRET = "Xylophonquark"


def own(library):
    return [info.name for info in library.libraries("me") if not info.is_shared]


def bytes_of(folder):
    """Returns all that lies in a folder, in lower case, as the index folds its words."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir())).lower()


@pytest.fixture
def library(tmp_path):
    opened = Library.open(tmp_path / "library")
    yield opened
    opened.close()


def test_a_removed_folder_is_made_anew_and_keeps_what_comes_then(library, tmp_path):
    library.add("me", "mine", "before.txt", b"The lamp was lit in 1871.")
    shutil.rmtree(tmp_path / "library")
    assert own(library) == [] and len(library.libraries("me")) > 1
    added = library.add("me", "mine", "after.txt", b"The tower has 212 steps.")
    library.close()
    again = Library.open(tmp_path / "library")
    assert [info.document_id for info in again.documents("me", "mine")] == [added.document_id]
    again.close()


def test_a_file_put_in_its_place_is_the_library_from_then_on(library, tmp_path):
    other = Library.open(tmp_path / "other")
    other.new_library("me", "restored")
    other.close()
    for name in (f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
        (tmp_path / "library" / name).unlink()
    os.replace(tmp_path / "other" / FILE_NAME, tmp_path / "library" / FILE_NAME)
    assert own(library) == ["restored"]


def test_a_folder_that_cannot_be_made_anew_is_tried_again(tmp_path):
    folder = tmp_path / "library"
    database = Database(folder / "x.db", [lambda db: db.execute("CREATE TABLE t (a)")])
    shutil.rmtree(folder)
    folder.write_text("a file in its way")
    for _ in range(2):
        with pytest.raises(LibraryUnavailable, match="cannot be opened"), database.reading():
            pass
    folder.unlink()
    with database.writing() as db:
        db.execute("INSERT INTO t VALUES (1)")
    database.close()
    assert (folder / "x.db").is_file()


def test_a_closed_library_stays_closed(library, tmp_path):
    library.close()
    shutil.rmtree(tmp_path / "library")
    with pytest.raises(LibraryUnavailable):
        library.libraries("me")
    assert not (tmp_path / "library").exists()


def test_no_word_of_a_deleted_document_is_left_in_the_files(library, tmp_path):
    for number in range(6):
        library.add("me", "mine", f"{number}.txt", f"The word {SECRET}{number} is {SECRET}, and so is lamp {number}. ".encode() * 20)
    kept = library.add("me", "mine", "kept.txt", b"The word that stays is Marimbafalter.")
    assert SECRET.lower().encode() in bytes_of(tmp_path / "library")
    for info in library.documents("me", "mine"):
        if info.document_id != kept.document_id:
            library.remove("me", info.document_id)
    # Stems are cut at the end and share their beginnings, so that a part of the word says enough.
    assert SECRET.lower()[:9].encode() not in bytes_of(tmp_path / "library")
    assert [found.info.document_id for found in library.search("me", "mine", "Marimbafalter")] == [kept.document_id]
    library.remove_owner("me")
    assert b"marimba" not in bytes_of(tmp_path / "library")


@pytest.mark.parametrize("half", ["\ud800", "a\udfff"])
def test_half_a_character_in_a_name_or_an_id_is_the_callers_mistake(library, half):
    library.new_library("me", "mine")
    for ask in (
        lambda: library.search("me", half, "lamp"),
        lambda: library.search("me", "mine", "lamp", documents=[half]),
        lambda: library.document("me", half),
        lambda: library.chunk("me", half),
        lambda: library.remove("me", half),
        lambda: library.libraries(half),
    ):
        with pytest.raises(BadRequest, match="holds half a character"):
            ask()


def test_a_python_without_full_text_search_is_named(tmp_path):
    def missing(db):
        raise sqlite3.OperationalError("no such module: fts5")

    with pytest.raises(LibraryUnavailable, match=r"without full-text search \(FTS5\); use a Python that has it"):
        Database(tmp_path / FILE_NAME, [missing, *MIGRATIONS[1:]])
