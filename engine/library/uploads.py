"""From a file's bytes to chunks: its kind, its text, its cuts. Stores nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from engine.errors import BadDocument, Cancelled
from engine.library.catalog import NewDocument
from engine.library.chunking import CountTokens, CutChunk, cut
from engine.library.limits import MIB, LibraryLimits
from engine.library.parse.base import ParsedText
from engine.library.parse.kinds import kind_of
from engine.library.parse.sandbox import parse_apart
from engine.library.types import IngestStatus

# A status for every chunk of a book would only fill the queue of who shows them.
MIN_STEP = 0.01
OnStatus = Callable[[IngestStatus], None]
IsCancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was read: its kind, its text, and a hash of all that decides its chunks, 32 hex digits."""

    name: str
    kind: str
    size_bytes: int
    parsed: ParsedText
    text_hash: str

    def row(self, document_id: str, now_s: float) -> NewDocument:
        """Returns what is stored of it beside its chunks."""
        parsed = self.parsed
        return NewDocument(
            document_id, self.name, parsed.title, self.kind, parsed.unit, parsed.num_units, self.size_bytes, now_s, wants_kv=True
        )


def read_upload(name: str, data: bytes, limits: LibraryLimits, on_status: OnStatus, cancelled: IsCancelled) -> Upload:
    """Returns a file's text. Raises BadDocument, whose sentence names the file, and Cancelled.

    Args:
        name: as shown, see `shown_name`.
    """
    try:
        if len(data) > limits.file_bytes:
            size = f"{len(data) / MIB:.1f} MiB; at most {limits.file_bytes / MIB:g} MiB are taken"
            raise BadDocument(f"has {size}, so split it.")
        kind = kind_of(name, data)
        on_status(IngestStatus(f"Reading {name}", 0.0, "reading"))
        parsed = parse_apart(kind, data, limits, cancelled)
    except BadDocument as error:
        raise BadDocument(f"The file {name!r} {error}") from None
    return Upload(name, kind, len(data), parsed, _hash_of(parsed, limits))


def cut_upload(
    upload: Upload, count_tokens: CountTokens, limits: LibraryLimits, on_status: OnStatus, cancelled: IsCancelled
) -> list[CutChunk]:
    """Returns the chunks of a text. Raises Cancelled."""
    num_chars = sum(len(passage.text) for passage in upload.parsed.passages)
    chunks: list[CutChunk] = []
    done, told = 0, 0.0
    for chunk in cut(upload.parsed, count_tokens, limits):
        if cancelled():
            raise Cancelled("Stopped while the text was cut into chunks; nothing of it is kept.")
        chunks.append(chunk)
        done += len(chunk.text)
        share = min(0.95, 0.3 + 0.65 * done / num_chars)
        if share - told >= MIN_STEP:
            told = share
            on_status(IngestStatus(f"Cutting {upload.name} into chunks: {len(chunks)}", share, "chunking"))
    return chunks


def _hash_of(parsed: ParsedText, limits: LibraryLimits) -> str:
    digest = blake2b(f"{limits.chunk_tokens} {limits.overlap_sentences} {parsed.unit} {parsed.title}".encode(), digest_size=16)
    for passage in parsed.passages:
        digest.update(f"\0{passage.heading}\1{passage.number}\1{passage.text}".encode())
    return digest.hexdigest()
