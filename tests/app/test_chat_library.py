"""The library column over the real library: what is shown, who may see it, what happens to files."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes import FakeSession

from engine.errors import LibraryUnavailable
from engine.library.types import DEFAULT_LIBRARY
from viz.panels import chat_upload
from viz.panels.chat_library_callbacks import LibraryCallbacks
from viz.panels.chat_shelf import PAGE_LEN, Shelf, library_choices, shelf_data
from viz.panels.chat_work import Running
from viz.panels.players import unpack

pytestmark = pytest.mark.usefixtures("toasts")
TEXT = "The zeppelin of Orsund is painted blue. It flies on Sundays."


@pytest.fixture(scope="module")
def session():
    return FakeSession(kv_delay_s=None)


@pytest.fixture
def calls(session):
    return LibraryCallbacks(session)


@pytest.fixture
def visitor(request):
    """A visitor whom no other test has seen."""
    return SimpleNamespace(session_hash=request.node.name)


def event(**data):
    return SimpleNamespace(_data=data)


def written(folder, name, text=TEXT):
    path = Path(folder) / name
    path.write_text(text)
    return str(path)


def uploaded(calls, visitor, paths, shelf=None, shelf_by_then=None):
    """Returns what is shown after an upload, and Cancel as it is then."""
    running, taken, came, _, cancel = calls.begin_upload(None, paths)
    assert came is None and cancel.visible
    told, _, cancel = list(calls.upload(visitor, shelf, taken, running))[-1]
    return [*calls.added(visitor, shelf_by_then or shelf, told, running), cancel]


def shown(values):
    return unpack(values[2])


def test_the_first_bundled_library_is_open_before_anything_is_asked(calls, visitor):
    values = calls.open_tab(visitor, None)
    data = shown(values)
    assert len(data["documents"]) == 1 and data["open"] == data["documents"][0]["id"] and len(data["chunks"]) == data["num_chunks"] > 5
    first = data["chunks"][0]
    assert first["summary"] and len(first["hash"]) == 12 and first["kv"]["text"] and "not used yet" in first["facts"]
    assert not data["can_forget"] and not data["documents"][0]["own"] and "cannot" not in data["note"]
    assert values[1].value == values[0].library and values[1].choices[0] == (DEFAULT_LIBRARY, DEFAULT_LIBRARY)


def test_what_was_looked_at_stays_when_the_tab_is_opened_again(calls, visitor):
    shelf = Shelf("harbour-museum")
    assert calls.open_tab(visitor, shelf)[0] is shelf


def test_an_upload_is_opened_in_the_visitors_own_library_and_the_file_is_gone(calls, visitor, tmp_path):
    path = written(tmp_path, "zeppelin.txt")
    values = uploaded(calls, visitor, [path], Shelf("alpine-railway"))
    data = shown(values)
    assert values[0].library == DEFAULT_LIBRARY and values[1].value == DEFAULT_LIBRARY and not Path(path).exists()
    assert [one["title"] for one in data["documents"]] == ["zeppelin.txt"] and data["documents"][0]["own"] and data["can_forget"]
    assert data["chunks"][0]["text"] == TEXT and unpack(values[4])["message"].startswith("One document is searchable now")
    assert not values[5].visible


def test_nobody_else_sees_it(calls, visitor, session, tmp_path):
    uploaded(calls, visitor, [written(tmp_path, "zeppelin.txt")])
    other = SimpleNamespace(session_hash="somebody else")
    assert shown(calls.choose(other, None, DEFAULT_LIBRARY))["documents"] == []
    chunk = shelf_data(session.library, f"page-{visitor.session_hash}", calls.open_tab(visitor, None)[0])["chunks"]
    own = session.library.chunks(f"page-{visitor.session_hash}", DEFAULT_LIBRARY)[0]
    values = calls.cite(event(chunk=own.chunk_id), other, None)
    assert "Unknown chunk" in unpack(values[4])["message"] and chunk


def test_a_file_that_does_not_hold_hinders_no_other(calls, visitor, tmp_path):
    paths = [written(tmp_path, "empty.txt", ""), written(tmp_path, "good.txt"), str(tmp_path / "vanished.txt")]
    values = uploaded(calls, visitor, paths)
    told = unpack(values[4])
    assert told["kind"] == "error" and "empty.txt" in told["message"] and "vanished.txt could not be read any more" in told["message"]
    assert "One document is searchable" in told["message"] and [one["title"] for one in shown(values)["documents"]] == ["good.txt"]


def test_more_files_than_are_taken_at_once_are_a_sentence(calls, visitor, tmp_path, monkeypatch):
    monkeypatch.setattr(chat_upload, "MAX_FILES", 2)
    values = uploaded(calls, visitor, [written(tmp_path, f"note{i}.txt", f"{TEXT} Note {i}.") for i in range(3)])
    assert "3 files were dropped; at most 2 are taken" in unpack(values[4])["message"] and len(shown(values)["documents"]) == 2


def test_cancel_keeps_nothing_of_the_rest(calls, visitor, tmp_path):
    running = Running()
    calls.cancelled(running)
    told, *_ = list(calls.upload(visitor, None, (Path(written(tmp_path, "zeppelin.txt")),), running))[-1]
    assert "Cancelled" in unpack(calls.added(visitor, None, told, running)[4])["message"]


def test_a_citation_opens_its_document_at_the_chunk(calls, visitor, session, tmp_path):
    text = " ".join(f"Sentence number {i} of the long report tells what happened in the harbour on day {i}." for i in range(400))
    uploaded(calls, visitor, [written(tmp_path, "long.txt", text)])
    chunks = session.library.chunks(f"page-{visitor.session_hash}", DEFAULT_LIBRARY)
    assert len(chunks) > PAGE_LEN
    wanted = chunks[PAGE_LEN + 1]
    values = calls.cite(event(chunk=wanted.chunk_id), visitor, Shelf("alpine-railway"))
    data = shown(values)
    assert data["focus"] == wanted.chunk_id and data["start"] == PAGE_LEN and wanted.chunk_id in {one["id"] for one in data["chunks"]}
    again = calls.cite(event(chunk=wanted.chunk_id), visitor, values[0])
    assert shown(again)["focus_count"] == data["focus_count"] + 1
    back = shown(calls.leaf(event(start=0), visitor, values[0]))
    assert back["start"] == 0 and len(back["chunks"]) == PAGE_LEN and back["focus"] == ""
    assert shown(calls.leaf(event(start=10**9), visitor, values[0]))["start"] == (len(chunks) - 1) // PAGE_LEN * PAGE_LEN


@pytest.mark.parametrize("call", ["open", "leaf", "cite", "remove", "tick", "rename", "drop"])
def test_what_a_page_did_not_send_is_a_sentence(calls, visitor, call):
    values = getattr(calls, call)(SimpleNamespace(_data=None), visitor, None)
    assert unpack(values[4])["kind"] == "error" and "\n" not in unpack(values[4])["message"]


def test_documents_are_deleted_one_by_one_all_together_or_with_the_page(calls, visitor, session, tmp_path):
    owner = f"page-{visitor.session_hash}"
    values = uploaded(calls, visitor, [written(tmp_path, f"note{i}.txt", f"{TEXT} Note {i}.") for i in range(3)])
    first = shown(values)["documents"][0]["id"]
    values = calls.remove(event(document=first), visitor, values[0])
    assert len(shown(values)["documents"]) == 2 and "Deleted" in unpack(values[4])["message"]
    assert shown(calls.forget(visitor, values[0]))["documents"] == [] and DEFAULT_LIBRARY not in {
        one.name for one in session.library.libraries(owner)
    }
    uploaded(calls, visitor, [written(tmp_path, "again.txt")])
    calls.left(visitor)
    assert all(one.is_shared for one in session.library.libraries(owner))


def test_bundled_documents_cannot_be_deleted(calls, visitor):
    document = shown(calls.open_tab(visitor, None))["documents"][0]["id"]
    assert "cannot be deleted" in unpack(calls.remove(event(document=document), visitor, None)[4])["message"]


def test_own_libraries_have_names_of_their_own(calls, visitor, tmp_path):
    values = calls.make(visitor, None, "Airships")
    assert values[0].library == "Airships" and values[1].value == "Airships"
    assert uploaded(calls, visitor, [written(tmp_path, "zeppelin.txt")], values[0])[0].library == "Airships"
    assert unpack(calls.make(visitor, values[0], "Airships")[4])["kind"] == "error"


def test_a_library_is_renamed_with_all_that_is_in_it(calls, visitor, session, tmp_path):
    owner = f"page-{visitor.session_hash}"
    values = uploaded(calls, visitor, [written(tmp_path, "zeppelin.txt")])
    before = session.library.documents(owner, DEFAULT_LIBRARY)
    values = calls.rename(event(library=DEFAULT_LIBRARY, name="  Airships of Orsund "), visitor, values[0])
    assert values[0].library == "Airships of Orsund" and values[1].value == "Airships of Orsund" and shown(values)["open"]
    after = session.library.documents(owner, "Airships of Orsund")
    assert [(one.document_id, one.num_chunks) for one in after] == [(one.document_id, one.num_chunks) for one in before]
    assert session.library.search(owner, "Airships of Orsund", "zeppelin")
    # The usual place for documents is on offer again, and empty.
    assert values[1].choices[0] == (DEFAULT_LIBRARY, DEFAULT_LIBRARY)


@pytest.mark.parametrize(
    ("library", "name", "said"),
    [
        (DEFAULT_LIBRARY, "alpine-railway", "already"),
        (DEFAULT_LIBRARY, "  ", "is empty"),
        (DEFAULT_LIBRARY, "x" * 61, "61 characters"),
        (DEFAULT_LIBRARY, "a\u202eb", "odd spaces or signs"),
        ("alpine-railway", "Mine", "belongs to everybody"),
        ("Somebody else's", "Mine", "Unknown library"),
    ],
)
def test_a_name_that_does_not_hold_changes_nothing(calls, visitor, session, tmp_path, library, name, said):
    uploaded(calls, visitor, [written(tmp_path, "zeppelin.txt")])
    before = session.library.libraries(f"page-{visitor.session_hash}")
    told = unpack(calls.rename(event(library=library, name=name), visitor, None)[4])
    assert told["kind"] == "error" and said in told["message"] and session.library.libraries(f"page-{visitor.session_hash}") == before


def test_a_library_is_deleted_and_nothing_else(calls, visitor, session, tmp_path):
    owner, other = f"page-{visitor.session_hash}", SimpleNamespace(session_hash=f"{visitor.session_hash} 2")
    for who in (visitor, other):
        uploaded(calls, who, [written(tmp_path, "zeppelin.txt")])
    values = calls.make(visitor, None, "Airships")
    values = uploaded(calls, visitor, [written(tmp_path, "balloon.txt", "The balloon of Vell is red.")], values[0])
    values = calls.drop(event(library="Airships"), visitor, values[0])
    assert "is deleted" in unpack(values[4])["message"] and values[0].library == DEFAULT_LIBRARY
    assert [one["title"] for one in shown(values)["documents"]] == ["zeppelin.txt"]
    assert not session.library.search(owner, DEFAULT_LIBRARY, "balloon") and session.library.search(owner, DEFAULT_LIBRARY, "zeppelin")
    assert session.library.search(f"page-{other.session_hash}", DEFAULT_LIBRARY, "zeppelin")
    assert "belongs to everybody" in unpack(calls.drop(event(library="alpine-railway"), visitor, None)[4])["message"]
    values = calls.drop(event(library=DEFAULT_LIBRARY), visitor, values[0])
    assert shown(values)["documents"] == [] and not shown(values)["own"]


def test_documents_are_left_out_of_the_search_until_they_are_ticked_again(calls, visitor, session, tmp_path):
    paths = [written(tmp_path, f"note{i}.txt", f"{TEXT} Note {i}.") for i in range(3)]
    values = uploaded(calls, visitor, paths)
    ids = [one["id"] for one in shown(values)["documents"]]
    values = calls.tick(event(left_out=[ids[0], ids[2], "somebody else's"]), visitor, values[0])
    assert [one["searched"] for one in shown(values)["documents"]] == [False, True, False] and values[0].left_out == {ids[0], ids[2]}
    # Looking elsewhere changes nothing, and what is dropped anew is searched, though something else was ticked meanwhile.
    away = calls.choose(visitor, values[0], "alpine-railway")
    assert all(one["searched"] for one in shown(away)["documents"])
    kept = calls.tick(event(left_out=[]), visitor, away[0])[0]
    assert kept.left_out == {ids[0], ids[2]}
    values = uploaded(calls, visitor, [written(tmp_path, "note0.txt", f"{TEXT} Note 0.")], Shelf(DEFAULT_LIBRARY), kept)
    assert [one["searched"] for one in shown(values)["documents"]] == [True, True, False]
    assert [one["searched"] for one in shown(calls.tick(event(left_out=[]), visitor, values[0]))["documents"]] == [True] * 3


def test_kv_is_computed_ahead_or_not_as_the_visitor_says(calls, visitor, tmp_path):
    values = uploaded(calls, visitor, [written(tmp_path, "zeppelin.txt")])
    [document] = shown(values)["documents"]
    assert document["kv"]["state"] == "computing" and document["kv"]["can_stop"] and values[3].active
    stopped = calls.ahead(event(document=document["id"], on=False), visitor, values[0])
    assert shown(stopped)["documents"][0]["kv"]["state"] == "none" and not stopped[3].active
    again = calls.ahead(event(document=document["id"], on=True), visitor, values[0])
    assert shown(again)["documents"][0]["kv"]["state"] == "computing"


def test_a_library_that_cannot_be_read_is_a_sentence_once_and_the_timer_rests(calls, visitor, monkeypatch, toasts):
    def broken(*_):
        raise LibraryUnavailable("The library is damaged; delete its folder.")

    monkeypatch.setattr(calls.session.library, "libraries", broken)
    assert unpack(calls.open_tab(visitor, None)[4])["message"] == "The library is damaged; delete its folder." and len(toasts) == 1
    assert not calls.refresh(visitor, Shelf("alpine-railway"))[1].active and len(toasts) == 1


def test_choices_offer_a_place_for_own_documents_before_there_are_any(session):
    choices = library_choices(session.library.libraries("page-nobody"))
    assert choices[0] == (DEFAULT_LIBRARY, DEFAULT_LIBRARY) and len(choices) == 11
