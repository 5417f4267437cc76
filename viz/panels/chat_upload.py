"""Files on their way into a library: one that does not hold hinders no other. Knows nothing of Gradio."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import BadRequest, EngineError
from engine.library.types import DEFAULT_LIBRARY, DocumentInfo, IngestStatus
from viz.panels.chat_shelf import Shelf
from viz.panels.chat_work import Work
from viz.panels.contract import SessionLike

MAX_FILES = 20


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of dropped files so far.

    Args:
        message, fraction: what is done right now.
        refused: one sentence on each file that was not taken.
    """

    documents: tuple[DocumentInfo, ...] = ()
    message: str = "Reading what you dropped."
    fraction: float = 0.0
    refused: tuple[str, ...] = ()

    def heard(self, item: IngestStatus | DocumentInfo | EngineError | None) -> "Taken":
        """Returns what is known after one item of the work."""
        match item:
            case IngestStatus():
                return replace(self, message=item.message, fraction=item.fraction)
            case DocumentInfo():
                return replace(self, documents=(*self.documents, item))
            case EngineError():
                return replace(self, refused=(*self.refused, str(item)))
        return self

    def opened(self, shelf: Shelf) -> Shelf:
        """Returns what to look at afterwards: the newest document, or what was looked at before."""
        if not self.documents:
            return shelf
        last = self.documents[-1]
        # The same text again is the document that is there: who drops it wants it searched.
        searched = shelf.left_out.difference(one.document_id for one in self.documents)
        return replace(shelf.of(last.library), document=last.document_id, left_out=searched)

    def outcome(self, is_stopped: bool) -> tuple[str, str]:
        """Returns kind and sentence for the status line."""
        num = len(self.documents)
        added = f"{'One document is' if num == 1 else f'{num} documents are'} searchable now: ask about {'it' if num == 1 else 'them'}."
        if self.refused:
            return "error", " ".join([*self.refused, *([added] if num else [])])
        if is_stopped:
            return "idle", f"Cancelled. {added}" if num else "Cancelled. Nothing was added."
        return ("done", added) if num else ("idle", "Nothing was dropped.")


def add_all(session: SessionLike, owner: str, name: str, paths: tuple[Path, ...]) -> Work:
    """Returns the work of adding files to the visitor's library called `name`, or to the usual one where that is not the visitor's."""

    def work(put: Callable[[Any], None], is_over: Callable[[], bool]) -> None:
        target = name if any(one.name == name and not one.is_shared for one in session.library.libraries(owner)) else DEFAULT_LIBRARY
        for path in paths[:MAX_FILES]:
            if is_over():
                return
            try:
                with closing(session.add_document(owner, target, path.name, _take(path))) as items:
                    for item in items:
                        put(item)
                        if is_over():
                            return
            except EngineError as error:
                put(error)
        if len(paths) > MAX_FILES:
            put(BadRequest(f"{len(paths)} files were dropped; at most {MAX_FILES} are taken at once, so drop the rest again."))

    return work


def _take(path: Path) -> bytes:
    """Returns a dropped file's bytes and deletes it: what is kept of it is in the library alone. Raises BadRequest."""
    try:
        data = path.read_bytes()
        path.unlink(missing_ok=True)
    except OSError:
        raise BadRequest(f"{path.name} could not be read any more; drop it again.") from None
    return data
