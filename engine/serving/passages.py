"""Which chunks a request is answered over: its own texts, named documents, or what a search finds in them."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.library.library import Library
from engine.library.types import DEFAULT_LIBRARY, SHARED
from engine.serving.problems import WrongField
from engine.serving.schema import Fusion, InlineDocument
from engine.types import Chunk

NOTHING_FOUND = "The search found no chunk with a word of the question; the answer was given without any."


class Passages(NamedTuple):
    """Chunks in the order in which they are read, and sentences about how they were found."""

    chunks: tuple[Chunk, ...]
    notices: tuple[str, ...] = ()


def passages(library: Library, owner: str | None, question: str, documents: Sequence[str | InlineDocument], fusion: Fusion) -> Passages:
    """Returns the chunks of a request. Raises UnknownName, WrongField and what the library raises.

    Args:
        owner: of documents; without one only the shared libraries are seen.
    """
    if fusion.library and not fusion.retrieve:
        raise WrongField("fusion.library", "A library is named and nothing is searched in it; set `fusion.retrieve` to a number of chunks.")
    visible, ids = owner or SHARED, [document for document in documents if isinstance(document, str)]
    inline = tuple(_inline(document, i) for i, document in enumerate(documents) if isinstance(document, InlineDocument))
    num = fusion.retrieve
    stored = search(library, owner, question, num, ids, fusion.library) if num else _whole(library, visible, ids)
    missed = num and not stored and not inline
    return Passages((*inline, *stored), (NOTHING_FOUND,) if missed else ())


def _inline(document: InlineDocument, index: int) -> Chunk:
    if not document.text.strip():
        raise WrongField(f"documents[{index}].text", f"Document {index + 1} has no text; write some or leave it out.")
    return Chunk(document.id or f"inline-{index + 1}", document.title, document.text)


def _whole(library: Library, owner: str, ids: Sequence[str]) -> tuple[Chunk, ...]:
    found = [info for name in ids for info in library.chunks(owner, library.document(owner, name).library, name)]
    return tuple(info.chunk() for info in found)


def search(
    library: Library, owner: str | None, query: str, num: int, documents: Sequence[str] = (), name: str | None = None
) -> tuple[Chunk, ...]:
    """Returns the `num` best chunks for a query, best first. Raises UnknownName.

    Args:
        documents: ids to search in; name: of the library. Without either it is the caller's usual one.
    """
    visible = owner or SHARED
    names = [name] if name else _libraries_of(library, visible, documents)
    found = [hit for each in names for hit in library.search(visible, each, query, num, documents or None)]
    # Relevance is a share of the best possible score, so it can be compared between libraries.
    found.sort(key=lambda hit: -(hit.chunk.relevance or 0.0))
    return tuple(hit.chunk for hit in found[:num])


def _libraries_of(library: Library, owner: str, ids: Sequence[str]) -> list[str]:
    """Returns the libraries that hold the documents, or the visitor's usual one where none is named."""
    return list(dict.fromkeys(library.document(owner, name).library for name in ids)) or [DEFAULT_LIBRARY]
