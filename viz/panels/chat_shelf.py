"""What a page looks at in the library, and what it shows of it. Knows nothing of Gradio."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import BadRequest, UnknownName
from engine.library.types import DEFAULT_LIBRARY, ChunkInfo, DocumentInfo, KvProgress, LibraryInfo
from viz.figures import words
from viz.panels.contract import LibraryLike

PAGE_LEN, TITLE_CHARS, TEXT_CHARS, MAX_DOCUMENTS = 40, 200, 4_000, 300
PRIVATE = "Your documents are visible in this page only, and are deleted when you close or reload it."
SHARED = "A bundled library: everybody sees it, nobody can change it. Documents you drop go to a library of your own."
EMPTY = "Nothing here yet. Drop a file above: it is searchable at once, its KV is computed behind it."
CHUNK_KV = {
    "stored": "KV stored",
    "waiting": "KV is next",
    "dropped": "KV dropped",
    "none": "no KV yet",
}


@dataclass(frozen=True, slots=True)
class Shelf:
    """What is looked at.

    Args:
        document: id of the open document, "" where none is.
        start: ordinal of its first chunk that is shown.
        focus: id of the chunk that was pointed at; num_focused counts how often one was.
        left_out: ids of documents that are not searched, of any library; a new one is searched until it is left out.
    """

    library: str = ""
    document: str = ""
    start: int = 0
    focus: str = ""
    num_focused: int = 0
    left_out: frozenset[str] = frozenset()

    def of(self, library: str) -> "Shelf":
        """Returns another library with no document open."""
        return Shelf(library, num_focused=self.num_focused, left_out=self.left_out)

    def opened(self, document: object) -> "Shelf":
        """Returns the shelf with a document open, or none for ""."""
        if not isinstance(document, str):
            raise BadRequest("The document is not named; press it in the list.")
        return replace(self, document=document, start=0, focus="")

    def paged(self, start: object) -> "Shelf":
        """Returns the shelf with other chunks of the open document."""
        if isinstance(start, bool) or not isinstance(start, int):
            raise BadRequest("The place in the document is not a number; use Earlier and Later.")
        return replace(self, start=max(0, start), focus="")

    def pointed_at(self, chunk: ChunkInfo) -> "Shelf":
        """Returns the shelf with a chunk in sight."""
        start = chunk.ordinal // PAGE_LEN * PAGE_LEN
        return replace(
            self.of(chunk.library), document=chunk.document_id, start=start, focus=chunk.chunk_id, num_focused=self.num_focused + 1
        )

    def searching(self, documents: Iterable[str], left_out: object) -> "Shelf":
        """Returns the shelf with these of a library's documents left out of the search, and no others of them."""
        if not isinstance(left_out, list) or not all(isinstance(one, str) for one in left_out):
            raise BadRequest("The documents to search in are not named; tick them in the list.")
        here = set(documents)
        return replace(self, left_out=self.left_out - here | here.intersection(left_out))


def shelf_of(library: LibraryLike, owner: str, name: str, shelf: Shelf | None = None) -> Shelf:
    """Returns a library to look at, its document open where there is but one. Raises EngineError."""
    looked = (shelf or Shelf()).of(name)
    if not any(one.name == name for one in library.libraries(owner)):
        return looked
    documents = library.documents(owner, name)
    return looked.opened(documents[0].document_id) if len(documents) == 1 else looked


def library_choices(libraries: tuple[LibraryInfo, ...]) -> list[tuple[str, str]]:
    """Returns titles and names: the visitor's own first, "My documents" among them before it is made."""
    own = [(one.title, one.name) for one in libraries if not one.is_shared]
    if DEFAULT_LIBRARY not in {name for _, name in own}:
        own.insert(0, (DEFAULT_LIBRARY, DEFAULT_LIBRARY))
    return [*own, *((one.title, one.name) for one in libraries if one.is_shared)]


def shelf_data(library: LibraryLike, owner: str, shelf: Shelf) -> dict[str, Any]:
    """Returns the documents of the library and the chunks of the open one. Raises EngineError."""
    known = {one.name: one for one in library.libraries(owner)}
    if shelf.library not in known:
        return _empty(shelf.library or DEFAULT_LIBRARY)
    documents, progress = library.documents(owner, shelf.library), library.kv_progress(owner)
    is_open = any(one.document_id == shelf.document for one in documents)
    chunks = library.chunks(owner, shelf.library, shelf.document) if is_open else ()
    start = min(shelf.start, max(0, len(chunks) - 1) // PAGE_LEN * PAGE_LEN)
    info = known[shelf.library]
    return {
        "name": info.name,
        "title": info.title,
        "own": not info.is_shared,
        "total": f"{_num(len(documents), 'document')}, {_num(info.num_chunks, 'chunk')}",
        "documents": [_document(one, progress, one.document_id not in shelf.left_out) for one in documents[:MAX_DOCUMENTS]],
        "open": shelf.document if is_open else "",
        "start": start,
        "page_len": PAGE_LEN,
        "num_chunks": len(chunks),
        "chunks": [_chunk(one) for one in chunks[start : start + PAGE_LEN]],
        "focus": shelf.focus,
        "focus_count": shelf.num_focused,
        "note": SHARED if info.is_shared else PRIVATE,
        "resting": progress.message if progress.is_resting else "",
        "can_forget": any(not one.is_shared for one in known.values()),
        "empty": EMPTY,
    }


def chunk_of(library: LibraryLike, owner: str, chunk_id: object) -> ChunkInfo:
    """Returns the chunk that a page points at. Raises UnknownName where it is gone."""
    if not isinstance(chunk_id, str):
        raise UnknownName("The chunk is not named; press a citation of an answer.")
    return library.chunk(owner, chunk_id)


def is_computing(progress: KvProgress) -> bool:
    """Whether KV is being computed for the visitor's documents."""
    return progress.num_left > 0 and not progress.is_resting


def _empty(title: str) -> dict[str, Any]:
    return {
        "name": title,
        "title": title,
        "own": False,
        "total": "No documents yet",
        "documents": [],
        "open": "",
        "start": 0,
        "page_len": PAGE_LEN,
        "num_chunks": 0,
        "chunks": [],
        "focus": "",
        "focus_count": 0,
        "note": PRIVATE,
        "resting": "",
        "can_forget": False,
        "empty": EMPTY,
    }


def _document(one: DocumentInfo, progress: KvProgress, is_searched: bool) -> dict[str, Any]:
    size = words.size(one.size_bytes) if one.size_bytes else ""
    units = _num(one.num_units, one.unit) if one.num_units else ""
    tokens = f"{one.num_tokens:,} tokens" if one.num_tokens else ""
    facts = (one.kind.upper() if one.kind != "scenario" else "", units, size, _num(one.num_chunks, "chunk"), tokens)
    return {
        "id": one.document_id,
        "title": words.shorten(one.title or one.name, TITLE_CHARS),
        "facts": " · ".join(filter(None, facts)),
        "own": not one.is_shared,
        "searched": is_searched,
        "kv": _document_kv(one, progress),
    }


def _document_kv(one: DocumentInfo, progress: KvProgress) -> dict[str, Any]:
    share = one.num_stored / max(1, one.num_chunks)
    count = f"{one.num_stored:,} of {one.num_chunks:,} chunks"
    if one.num_stored >= one.num_chunks:
        return {"state": "stored", "text": "KV of all chunks stored", "share": 1.0, "can_stop": False}
    if one.is_waiting and not progress.is_resting:
        return {"state": "computing", "text": f"computing KV: {count}", "share": share, "can_stop": True}
    text = f"KV of {count} stored, the rest when used" if one.num_stored else "KV computed when first used"
    return {"state": "none", "text": text, "share": share, "can_stop": False}


def _chunk(one: ChunkInfo) -> dict[str, Any]:
    size = words.size(one.kv_size_bytes) if one.kv_size_bytes else ""
    tokens = f"{one.num_tokens:,} tokens" if one.num_tokens is not None else ""
    facts = (tokens, one.place, size, f"used {_num(one.hits, 'time')}" if one.hits else "not used yet")
    return {
        "id": one.chunk_id,
        "number": one.ordinal + 1,
        "title": words.shorten(one.title or one.document, TITLE_CHARS),
        "summary": one.summary,
        "text": one.text if len(one.text) <= TEXT_CHARS else one.text[:TEXT_CHARS] + " …",
        "hash": one.text_hash[:12],
        "facts": " · ".join(filter(None, facts)),
        "kv": {"state": {"stored": "stored", "waiting": "computing"}.get(one.kv_state, "none"), "text": CHUNK_KV[one.kv_state]},
    }


def _num(num: int, what: str) -> str:
    return f"{num:,} {what}{'' if num == 1 else 's'}"
