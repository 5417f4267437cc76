"""The library: documents of owners, what each sees, limits, names, uses, removal."""

import pytest
from library_samples import TEXT, make_pdf, make_text, open_library, valid_files

from engine.errors import BadDocument, BadRequest, Cancelled, UnknownName
from engine.library.limits import LibraryLimits
from engine.library.types import DEFAULT_LIBRARY, SHARED
from engine.scenarios import load_scenarios

ME, OTHER = "visitor-1", "visitor-2"


@pytest.fixture
def library(tmp_path):
    opened = open_library(tmp_path)
    yield opened
    opened.close()


def test_scenarios_are_shared_libraries_of_all_their_passages(library):
    shared = {info.name: info for info in library.libraries(ME)}
    assert set(shared) == set(load_scenarios())
    for name, scenario in load_scenarios().items():
        assert shared[name].is_shared and shared[name].title == scenario.title
        chunks = library.chunks(ME, name)
        assert [chunk.chunk(None).text for chunk in chunks] == [passage.text for passage in scenario.passages]
        assert [chunk.chunk_id for chunk in chunks] == [f"{name}:{passage.id}" for passage in scenario.passages]


@pytest.mark.parametrize("name", valid_files())
def test_a_file_of_each_kind_can_be_found(library, name):
    statuses = []
    document = library.add(ME, DEFAULT_LIBRARY, name, valid_files()[name], statuses.append)
    assert document.kind == name.rpartition(".")[2] and document.num_chunks == len(library.chunks(ME, DEFAULT_LIBRARY))
    assert document.is_waiting and document.num_stored == 0
    best = library.search(ME, DEFAULT_LIBRARY, "Ada Quill 1871")[0]
    assert "Ada" in best.info.text and 0 < best.chunk.relevance <= 1 and best.bm25_rank == 1 and best.dense_rank is None
    shares = [status.fraction for status in statuses]
    assert shares == sorted(shares) and shares[-1] == 1.0 and [s.phase for s in statuses][-2:] == ["storing", "done"]


def test_a_book_of_two_hundred_pages_can_be_searched_when_it_is_added(library):
    pages = [[line for line in make_text(i, 12).replace("\n\n", " ").split(". ")] for i in range(200)]
    document = library.add(ME, "Books", "book.pdf", make_pdf(pages, title="The book", compress=True))
    assert (document.unit, document.num_units, document.title) == ("page", 200, "The book") and document.num_chunks >= 200
    best = library.search(ME, "Books", "What does note 137-5 say?")[0]
    assert "Note 137-5 says" in best.info.text and "138" in best.info.place


def test_owners_do_not_see_each_other(library):
    mine = library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    theirs = library.add(OTHER, "Lamps", "lamp.txt", TEXT.encode())
    assert mine.document_id != theirs.document_id
    assert [d.document_id for d in library.documents(ME, "Lamps")] == [mine.document_id]
    chunk_id = library.chunks(ME, "Lamps")[0].chunk_id
    asked = (
        lambda: library.document(OTHER, mine.document_id),
        lambda: library.chunk(OTHER, chunk_id),
        lambda: library.chunks(OTHER, "Lamps", mine.document_id),
        lambda: library.search(OTHER, "Lamps", "lamp", documents=[mine.document_id]),
        lambda: library.remove(OTHER, mine.document_id),
        lambda: library.cancel_kv(OTHER, mine.document_id),
        lambda: library.document(SHARED, mine.document_id),
    )
    for ask in asked:
        with pytest.raises(UnknownName):
            ask()
    assert library.remove_owner(OTHER) == 1
    assert library.document(ME, mine.document_id) == mine
    with pytest.raises(UnknownName, match="Unknown library 'Lamps'"):
        library.documents(OTHER, "Lamps")


def test_the_same_text_again_is_the_document_that_is_there(library):
    first = library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    assert library.add(ME, "Lamps", "copy.txt", TEXT.encode()) == first
    before = [chunk.text_hash for chunk in library.chunks(ME, "Lamps")]
    other = library.add(ME, "More lamps", "renamed.txt", TEXT.encode())
    assert other.document_id != first.document_id
    assert [chunk.text_hash for chunk in library.chunks(ME, "More lamps")] == before


@pytest.mark.parametrize(
    "name, shown",
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\ada\\lamp.txt", "lamp.txt"),
        ("<img src=x onerror=alert(1)>.txt", "<img src=x onerror=alert(1)>.txt"),
        ("a\u202etxt.exe\0\n.txt", "atxt.exe.txt"),
        ("x" * 300 + ".txt", "x" * 112 + "….txt"),
    ],
)
def test_names_are_shown_without_folders_and_control_characters(library, tmp_path, name, shown):
    assert library.add(ME, "Lamps", name, TEXT.encode()).name == shown
    assert {path.name.partition("-")[0] for path in tmp_path.rglob("*")} == {"library.sqlite"}


def test_shared_libraries_cannot_be_changed(library):
    name = "harbour-museum"
    document = library.documents(ME, name)[0]
    for change in (
        lambda: library.add(ME, name, "lamp.txt", TEXT.encode()),
        lambda: library.add(SHARED, "Lamps", "lamp.txt", TEXT.encode()),
        lambda: library.remove(ME, document.document_id),
        lambda: library.rename(ME, name, "Mine"),
        lambda: library.remove_library(ME, name),
        lambda: library.new_library(ME, name),
        lambda: library.new_library(SHARED, "Lamps"),
        lambda: library.remove_owner(SHARED),
    ):
        with pytest.raises(BadRequest):
            change()
    assert library.documents(ME, name) == (document,)


def test_libraries_are_made_renamed_and_removed(library):
    assert library.new_library(ME, "Lamps").num_documents == 0
    library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    assert library.rename(ME, "Lamps", "Lights").num_documents == 1
    assert [info.name for info in library.libraries(ME) if not info.is_shared] == ["Lights"]
    for wrong in ("", "  ", "Lights", "a" * 61, "two\nlines", " padded"):
        with pytest.raises(BadRequest):
            library.new_library(ME, wrong)
    assert library.remove_library(ME, "Lights") == 1
    assert library.stats().num_owners == 0
    with pytest.raises(UnknownName):
        library.rename(ME, "Lights", "Lamps")


def test_limits_of_an_owner_are_one_sentence_each(tmp_path):
    limits = LibraryLimits(owner_documents=2, owner_libraries=2, owner_bytes=5_000)
    library = open_library(tmp_path, limits)
    library.add(ME, "One", "a.txt", make_text(1, 10).encode())
    with pytest.raises(BadRequest, match="MiB is all one visitor may have"):
        library.add(ME, "One", "big.txt", b"word " * 1000)
    library.new_library(ME, "Two")
    with pytest.raises(BadRequest, match="You have 2 libraries"):
        library.new_library(ME, "Three")
    library.add(ME, "Two", "b.txt", make_text(2, 10).encode())
    with pytest.raises(BadRequest, match="You have 2 documents"):
        library.add(ME, "Two", "c.txt", b"One more.")
    library.add(OTHER, "One", "a.txt", make_text(1, 10).encode())
    assert library.stats().num_documents == 3 + len(load_scenarios())


def test_a_cancelled_upload_leaves_nothing(library):
    seen = []

    def after_some_chunks() -> bool:
        return sum(status.phase == "chunking" for status in seen) > 2

    for cancelled in (lambda: True, after_some_chunks):
        with pytest.raises(Cancelled):
            library.add(ME, "Lamps", "lamp.txt", make_text(3, 400).encode(), seen.append, cancelled)
    assert not [info for info in library.libraries(ME) if not info.is_shared]


def test_uses_are_counted(library):
    library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    chunk = library.chunks(ME, "Lamps")[0]
    assert chunk.hits == 0 and chunk.last_use_s is None
    library.touch([chunk.chunk_id, "harbour-museum:p01", "never was"])
    library.touch([chunk.chunk_id])
    assert library.chunk(ME, chunk.chunk_id).hits == 2 and library.chunk(ME, chunk.chunk_id).last_use_s > 0
    assert library.chunk(OTHER, "harbour-museum:p01").hits == 1


def test_documents_take_turns_at_having_their_kv_computed(library):
    long = library.add(ME, "Lamps", "long.txt", make_text(1, 200).encode())
    served = []
    for i in range(12):
        if i == 4:
            short = library.add(OTHER, "Lamps", "short.txt", make_text(2, 20).encode())
        (job,) = library.kv.wanted("tiny")
        served.append(job.document)
        assert library.kv.set("tiny", job.chunk.chunk_id, f"{i:032d}", 1)
    assert served[:4] == ["long.txt"] * 4 and served[4 : 4 + short.num_chunks] == ["short.txt"] * short.num_chunks
    assert long.num_chunks > 12 and served[-1] == "long.txt"


def test_a_removed_document_is_found_no_more(library):
    kept = library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    gone = library.add(ME, "Lamps", "note.txt", b"The heron sleeps on the north pier.")
    assert library.search(ME, "Lamps", "heron")
    library.remove(ME, gone.document_id)
    assert library.search(ME, "Lamps", "heron") == ()
    assert library.documents(ME, "Lamps") == (kept,)
    with pytest.raises(UnknownName, match="was deleted or is not yours"):
        library.document(ME, gone.document_id)


def test_owners_who_left_long_ago_are_forgotten(tmp_path, monkeypatch):
    library = open_library(tmp_path, LibraryLimits(owner_hours=1))
    library.add(ME, "Lamps", "lamp.txt", TEXT.encode())
    later = __import__("time").time() + 2 * 3600
    monkeypatch.setattr("engine.library.owners.time.time", lambda: later)
    # A jump of the clock takes nothing from whom this process knows.
    library.documents(ME, "Lamps")
    assert library.sweep() == 0 and library.documents(ME, "Lamps")
    library.close()
    monkeypatch.setattr("engine.library.owners.time.time", lambda: later + 2 * 3600)
    library = open_library(tmp_path, LibraryLimits(owner_hours=1))
    assert library.stats().num_owners == 0 and library.stats().num_documents == len(load_scenarios())


def test_a_changed_scenario_is_brought_up_to_date(tmp_path, monkeypatch):
    from dataclasses import replace

    open_library(tmp_path).close()
    scenarios = load_scenarios()
    museum = scenarios.pop("harbour-museum")
    changed = replace(museum, passages=(replace(museum.passages[0], text="The heron moved in."), *museum.passages[1:]))
    monkeypatch.setattr("engine.library.library.load_scenarios", lambda: {**dict(list(scenarios.items())[1:]), "harbour-museum": changed})
    library = open_library(tmp_path)
    assert library.search(ME, "harbour-museum", "heron")[0].info.ordinal == 0
    assert len(library.libraries(ME)) == len(scenarios)


def test_errors_of_files_name_the_file(library):
    with pytest.raises(BadDocument, match=r"^The file 'lamp.exe' is of no known kind; upload one of \.txt"):
        library.add(ME, "Lamps", "lamp.exe", b"MZ")
