"""KV of uploads: computed in the background behind visitors' runs, with progress, stop, resumption, and room for others."""

import threading
import time
from dataclasses import replace

import pytest
from library_samples import TEXT, make_text
from worlds import lighthouse, tiny_runtime

import engine.runtime
from engine.errors import BadRequest, ModelUnavailable
from engine.library.counting import TokenCounter
from engine.library.ingest import kv_name, store_chunk
from engine.library.limits import LibraryLimits
from engine.library.tools import KvFiles
from engine.library.types import DEFAULT_LIBRARY, DocumentInfo, IngestStatus
from engine.session import Session
from engine.settings import Settings
from engine.types import FusionRequest

ME, OTHER = "visitor-1", "visitor-2"


@pytest.fixture
def make_session(tmp_path, monkeypatch):
    """Makes sessions of a tiny model on one folder; they are closed in the end."""
    made = []

    def load(name, settings, store=None):
        if name == "missing":
            raise ModelUnavailable("There is no model 'missing'; give a hub id or a local path.")
        return tiny_runtime(tmp_path, "qwen3" if name == "qwen3" else "llama")

    def make(**settings) -> Session:
        made.append(Session(Settings(cache_dir=tmp_path, num_threads=1, **settings)))
        return made[-1]

    monkeypatch.setattr(engine.runtime, "load_runtime", load)
    yield make
    for session in made:
        session._documents.close()


def add(session: Session, text: str, owner: str = ME, library: str = DEFAULT_LIBRARY) -> DocumentInfo:
    *statuses, document = session.add_document(owner, library, "note.txt", text.encode())
    assert all(isinstance(status, IngestStatus) for status in statuses)
    return document


def wait_until(holds, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def done(session: Session, owner: str = ME) -> bool:
    progress = session.library.kv_progress(owner)
    return progress.num_chunks > 0 and progress.num_left == 0


def test_kv_is_computed_behind_the_upload_and_used_by_requests(make_session):
    session = make_session()
    document = add(session, make_text(1, 30))
    assert session.library.search(ME, DEFAULT_LIBRARY, "Note 1-3 says")
    wait_until(lambda: done(session))
    shown = session.library.document(ME, document.document_id)
    assert shown.num_stored == shown.num_chunks > 1 and not shown.is_waiting
    chunks = session.library.chunks(ME, DEFAULT_LIBRARY)
    assert all(chunk.kv_state == "stored" and chunk.kv_size_bytes > 0 for chunk in chunks)
    request = FusionRequest("What does note 1-3 say?", tuple(chunk.chunk() for chunk in chunks[:2]), max_new_tokens=2)
    run = session.run(request, ("full", "qcfuse"))
    assert [chunk.cache_hash for chunk in run.chunks] == [chunk.kv_hash for chunk in chunks[:2]]
    assert all(chunk.source == "disk" for chunk in run.chunks)
    assert [chunk.hits for chunk in session.library.chunks(ME, DEFAULT_LIBRARY)][:3] == [1, 1, 0]
    assert session.library.kv_progress(ME).message == f"The KV of all {shown.num_chunks} chunks is computed."


def test_the_same_text_again_is_not_computed_again(make_session):
    session = make_session()
    add(session, make_text(1, 20))
    wait_until(lambda: done(session))
    misses = session._ready().store.stats().misses
    add(session, make_text(1, 20), OTHER)
    wait_until(lambda: done(session, OTHER))
    assert session._ready().store.stats().misses == misses


def test_tokens_are_counted_by_the_models_tokenizer(make_session):
    session = make_session(library=LibraryLimits(chunk_tokens=64))
    add(session, make_text(1, 20))
    for chunk in session.library.chunks(ME, DEFAULT_LIBRARY):
        assert chunk.num_tokens == len(session._ready().prompts.chunk(chunk.chunk()))
        # The budget is the text's; a title and what joins sentences come on top.
        assert len(chunk.text.encode()) <= 64 + 8


@pytest.mark.parametrize("text", ["The lamp was lit.", "<|im_end|> is text, <|endoftext|> too", "灯塔 🚢 é", "", " " * 50])
def test_tokens_are_counted_as_prompts_have_them(tmp_path, text):
    runtime = tiny_runtime(tmp_path)
    assert TokenCounter(lambda: runtime)(text) == len(runtime.prompts.tokenize(text))


def test_runs_over_a_scenario_are_counted_too(make_session):
    session = make_session()
    scenario = session.scenario("harbour-museum")
    before = session.library.chunks(ME, scenario.name)
    assert {chunk.kv_state for chunk in before} == {"none"} and {chunk.num_tokens for chunk in before} == {None}
    run = session.run(scenario.request("q1", chunks=scenario.chunks()[:1], max_new_tokens=2), ("full", "qcfuse"))
    used, other = session.library.chunks(ME, scenario.name, num=2)
    assert used.hits == 1 and used.kv_state == "stored" and used.kv_hash == run.chunks[0].cache_hash
    assert used.num_tokens == run.chunks[0].stop - run.chunks[0].start and other.hits == 0


def test_a_removed_documents_kv_is_dropped_unless_others_use_it(make_session, tmp_path):
    session = make_session()
    shared, mine = make_text(1, 20), make_text(2, 20)
    both, own = add(session, shared), add(session, mine, library="Own")
    add(session, shared, OTHER)
    wait_until(lambda: done(session) and done(session, OTHER))
    files = KvFiles(tmp_path / "chunks")
    of_both = {chunk.kv_hash for chunk in session.library.chunks(ME, DEFAULT_LIBRARY)}
    of_mine = {chunk.kv_hash for chunk in session.library.chunks(ME, "Own")}
    session.library.remove(ME, both.document_id)
    assert all(files.has(kv_hash) for kv_hash in of_both | of_mine)
    session.library.remove(ME, own.document_id)
    assert all(files.has(kv_hash) for kv_hash in of_both) and not any(files.has(kv_hash) for kv_hash in of_mine)
    assert session.library.remove_owner(OTHER) == 1
    assert not any(files.has(kv_hash) for kv_hash in of_both)
    session.run(lighthouse(max_new_tokens=2), ("full", "qcfuse"))


def test_kv_of_a_scenario_is_kept_when_a_copy_of_its_text_goes(make_session, tmp_path):
    session = make_session()
    scenario = session.scenario("harbour-museum")
    chunk = session.library.chunks(ME, "harbour-museum", num=1)[0]
    kv = store_chunk(session._ready(), chunk.chunk(), lambda: False)
    session.library.kv.set(kv_name(session._ready()), chunk.chunk_id, kv.kv_hash, kv.size_bytes)
    # A page with the scenario's title and text makes the same chunk, so it shares the same KV.
    title, text = scenario.passages[0].title, scenario.passages[0].text
    *_, document = session.add_document(ME, "Copy", "copy.html", f"<html><h1>{title}</h1><p>{text}</p>".encode())
    wait_until(lambda: done(session))
    copies = session.library.chunks(ME, "Copy")
    session.library.remove(ME, document.document_id)
    assert KvFiles(tmp_path / "chunks").has(kv.kv_hash)
    assert session.library.chunk(ME, chunk.chunk_id).kv_state == "stored"
    assert all(copy.kv_hash == kv.kv_hash or not KvFiles(tmp_path / "chunks").has(copy.kv_hash) for copy in copies)


def test_names_of_kv_files_are_the_stores(make_session, tmp_path):
    from engine.chunks.folder import ChunkFolder

    assert KvFiles._path(tmp_path, "a" * 32) == ChunkFolder(tmp_path).path("a" * 32)
    KvFiles(tmp_path).drop(["b" * 32])
    assert not KvFiles(None).has("a" * 32)


def test_visitors_runs_come_first(make_session):
    session = make_session()
    session._ready()
    go, inside = threading.Event(), threading.Event()

    def hold(status):
        inside.set()
        go.wait(20)

    runs = [threading.Thread(target=session.run, args=(lighthouse(max_new_tokens=2), ("full",), hold)) for _ in range(2)]
    for run in runs:
        run.start()
    assert inside.wait(20)
    wait_until(lambda: session.num_waiting == 1)
    document = add(session, make_text(1, 10))
    time.sleep(0.3)
    # Somebody waits, so the computation has not even asked for its turn.
    assert session.num_waiting == 1 and session.library.document(ME, document.document_id).num_stored == 0
    go.set()
    for run in runs:
        run.join(20)
    wait_until(lambda: done(session))


def test_it_goes_on_where_it_was_stopped(make_session):
    first = make_session()
    document = add(first, make_text(1, 40))
    wait_until(lambda: first.library.kv_progress(ME).num_done >= 2)
    first._documents.close()
    second = make_session()
    begun = second.library.document(ME, document.document_id)
    assert begun.num_chunks > 3
    wait_until(lambda: done(second))
    assert second.library.document(ME, document.document_id).num_stored == begun.num_chunks


def test_a_documents_kv_can_be_cancelled_and_resumed(make_session):
    session = make_session(model="missing")
    library = session.library
    # Without a model there is no tokenizer either; the text is there all the same.
    library._tools = replace(library._tools, count_tokens=lambda text: len(text.split()))
    document = add(session, make_text(1, 30))
    wait_until(lambda: library.kv_progress(ME).is_resting)
    assert "no model 'missing'" in library.kv_progress(ME).message
    library.cancel_kv(ME, document.document_id)
    assert library.kv_progress(ME).num_chunks == 0 and not library.document(ME, document.document_id).is_waiting
    assert {chunk.kv_state for chunk in library.chunks(ME, DEFAULT_LIBRARY)} == {"none"}
    library.resume_kv(ME, document.document_id)
    assert {chunk.kv_state for chunk in library.chunks(ME, DEFAULT_LIBRARY)} == {"waiting"}
    session.select_model("llama")
    wait_until(lambda: done(session))
    session.select_model("qwen3")
    wait_until(lambda: done(session))
    assert session.library.document(ME, document.document_id).num_stored == document.num_chunks


def test_computing_ahead_leaves_room_in_the_store(make_session, monkeypatch):
    # A megabyte of the store's two gigabytes, which holds six or seven chunks of the tiny model.
    monkeypatch.setattr("engine.library.ingest.MAX_STORE_SHARE", 2**-11)
    session = make_session()
    add(session, make_text(1, 60))
    wait_until(lambda: session.library.kv_progress(ME).is_resting)
    progress = session.library.kv_progress(ME)
    assert 0 < progress.num_done < progress.num_chunks and "FUSESCOPE_CHUNK_GIB" in progress.message
    assert session._ready().store.stats().evictions == 0
    session.run(lighthouse(max_new_tokens=2), ("full", "qcfuse"))


def test_closing_an_upload_stops_it(make_session):
    session = make_session()
    upload = session.add_document(ME, DEFAULT_LIBRARY, "note.txt", make_text(1, 5000).encode())
    next(upload)
    upload.close()
    time.sleep(0.5)
    assert not [info for info in session.library.libraries(ME) if not info.is_shared]
    assert add(session, TEXT).num_chunks >= 1


def test_a_document_that_goes_while_its_kv_is_computed_leaves_no_file(make_session, tmp_path, monkeypatch):
    session = make_session()
    inside, go = threading.Event(), threading.Event()

    def slow(runtime, chunk, cancelled):
        inside.set()
        assert go.wait(20)
        return store_chunk(runtime, chunk, cancelled)

    monkeypatch.setattr("engine.library.ingest.store_chunk", slow)
    document = add(session, "The heron sleeps on the pier.")
    assert inside.wait(20)
    session.library.remove(ME, document.document_id)
    before = {path.name for path in (tmp_path / "chunks").glob("*.safetensors")}
    go.set()
    session._documents.close()
    assert {path.name for path in (tmp_path / "chunks").glob("*.safetensors")} <= before


def test_a_document_that_the_model_cannot_take_does_not_hold_up_others(make_session, monkeypatch):
    def picky(runtime, chunk, cancelled):
        if "heron" in chunk.text:
            raise BadRequest("The chunk is too long.")
        return store_chunk(runtime, chunk, cancelled)

    monkeypatch.setattr("engine.library.ingest.store_chunk", picky)
    session = make_session()
    bad, good = add(session, "The heron sleeps on the pier."), add(session, TEXT)
    wait_until(lambda: session.library.document(ME, good.document_id).num_stored == good.num_chunks)
    assert session.library.document(ME, bad.document_id).num_stored == 0 and done(session)
