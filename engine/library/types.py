"""Frozen values of the library: what is in it, what a search found, what an upload is doing."""

from dataclasses import dataclass
from typing import Literal

from engine.types import Chunk

# The owner of what everybody sees and nobody changes: the scenarios.
SHARED = ""
DEFAULT_LIBRARY = "My documents"

KvState = Literal["stored", "waiting", "dropped", "none"]
Phase = Literal["reading", "chunking", "storing", "done"]


@dataclass(frozen=True, slots=True)
class LibraryInfo:
    """A named set of documents. `name` addresses it, `title` is shown; shared ones are read-only."""

    name: str
    title: str
    is_shared: bool
    num_documents: int
    num_chunks: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One document.

    Args:
        name: the file's name without its path, to be shown only.
        title: what the text calls itself, "" where it does not.
        kind: "txt", "md", "pdf", "csv", "html", "docx" or "scenario".
        unit, num_units: "page" or "row" and how many; "" and 0 where the text has none.
        size_bytes: of the file as it came.
        num_tokens: of its chunks, overlaps counted twice; 0 until the model's tokenizer has counted them.
        num_stored: chunks whose KV is stored for the model in use.
        is_waiting: whether KV of its chunks is still to be computed in the background.
        created: ISO 8601, UTC.
    """

    document_id: str
    library: str
    name: str
    title: str
    kind: str
    unit: str
    num_units: int
    size_bytes: int
    num_chunks: int
    num_tokens: int
    num_stored: int
    is_waiting: bool
    is_shared: bool
    created: str


@dataclass(frozen=True, slots=True)
class ChunkInfo:
    """One chunk, as the library shows it.

    Args:
        ordinal: place in its document, from 0.
        title: the heading it stands under, part of what the model reads; from the text, never from the file's name.
        place: "page 3", "rows 12-20" or "".
        summary: its first sentence or two, cut to about 160 characters.
        text_hash: 32 hex digits over what the model reads; equal texts in other documents have the same.
        num_tokens: with the title, by the tokenizer of the model it was cut for; None until one has counted.
        kv_hash: name of its stored KV for the model in use, None where none was computed.
        kv_size_bytes: of that file, 0 where there is none.
        kv_state: "stored"; "waiting" to be computed in the background; "dropped" by the store to make room, or "none":
            either is computed when it is first used.
        hits: requests that used it. last_use_s: Unix time of the last one.
    """

    chunk_id: str
    document_id: str
    document: str
    library: str
    ordinal: int
    title: str
    text: str
    place: str
    summary: str
    text_hash: str
    num_tokens: int | None
    kv_hash: str | None
    kv_size_bytes: int
    kv_state: KvState
    hits: int
    last_use_s: float | None

    def chunk(self, relevance: float | None = None) -> Chunk:
        """Returns the chunk as a request takes it."""
        return Chunk(self.chunk_id, self.title, self.text, relevance)


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk that a search found, best first.

    Args:
        chunk: ready for a request; its relevance, 0..1, never rises down the list. By words alone it is the bm25 score as
            a share of what a chunk of average length gets that holds every word of the query once (1 at most). Merged
            with dense retrieval it is the reciprocal-rank score as a share of being first in both.
        bm25_rank, dense_rank: place in either list from 1, None where it is not in that list.
    """

    chunk: Chunk
    info: ChunkInfo
    bm25_rank: int | None
    dense_rank: int | None


@dataclass(frozen=True, slots=True)
class IngestStatus:
    """What an upload is doing: one sentence and the share done, 0..1."""

    message: str
    fraction: float
    phase: Phase


@dataclass(frozen=True, slots=True)
class KvProgress:
    """How far the background computation of KV is, for one owner's documents.

    Args:
        num_chunks: chunks of the documents that want their KV computed ahead.
        num_done: those that have it.
        message: one sentence; says why nothing happens where the computation rests.
        is_resting: whether it rests though chunks are left: no model, or no room in the chunk store.
    """

    num_chunks: int
    num_done: int
    message: str
    is_resting: bool

    @property
    def num_left(self) -> int:
        """Returns how many chunks are still to be computed."""
        return self.num_chunks - self.num_done


@dataclass(frozen=True, slots=True)
class KvJob:
    """A chunk whose KV is to be computed in the background."""

    chunk: Chunk
    text_hash: str
    document: str
    ordinal: int
    num_chunks: int


@dataclass(frozen=True, slots=True)
class TextJob:
    """A chunk whose vector for dense retrieval is to be computed: its row and its text with the title."""

    row_id: int
    text: str


@dataclass(frozen=True, slots=True)
class LibraryStats:
    """Counts over everything in the file, for metrics: no names and no texts."""

    num_owners: int
    num_libraries: int
    num_documents: int
    num_chunks: int
    num_stored: int
    size_bytes: int
    hits: int
