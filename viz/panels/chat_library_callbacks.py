"""What happens in the library of the Chat tab: parse, one call of the library, values to show. Components are named in chat_library.py."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.library.types import DEFAULT_LIBRARY
from viz.panels.chat_shelf import Shelf, chunk_of, is_computing, library_choices, shelf_data, shelf_of
from viz.panels.chat_upload import Taken, add_all
from viz.panels.chat_visitor import owner_of
from viz.panels.chat_work import Running, items_of
from viz.panels.contract import LibraryLike, SessionLike
from viz.panels.fuse_view import status
from viz.panels.live import failed
from viz.panels.players import pack

Outputs = list[Any]
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LibraryCallbacks:
    """Callbacks of one page; holds nothing of a visitor.

    Those that change what is looked at return shelf, selector, list, timer and status.
    """

    session: SessionLike

    def open_tab(self, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Shows the library when the tab is opened: at first the first bundled one, which has questions on offer."""
        return self._shown(request, lambda library, owner: shelf or shelf_of(library, owner, _first(library, owner)))

    def choose(self, request: gr.Request, shelf: Shelf | None, name: Any) -> Outputs:
        """Shows another library."""
        return self._shown(request, lambda library, owner: shelf_of(library, owner, str(name or ""), shelf))

    def open(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Opens or closes a document."""
        return self._shown(request, lambda library, owner: (shelf or Shelf()).opened(_sent(event, "document")))

    def leaf(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Shows other chunks of the open document."""
        return self._shown(request, lambda library, owner: (shelf or Shelf()).paged(_sent(event, "start")))

    def cite(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Shows a chunk that an answer cites."""
        return self._shown(request, lambda library, owner: (shelf or Shelf()).pointed_at(chunk_of(library, owner, _sent(event, "chunk"))))

    def tick(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Leaves documents of the library out of the search."""

        def act(library: LibraryLike, owner: str) -> Shelf:
            looked = shelf or Shelf()
            return looked.searching((one.document_id for one in library.documents(owner, looked.library)), _sent(event, "left_out"))

        return self._shown(request, act)

    def rename(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Renames a library of the visitor's; what is open stays open."""

        def act(library: LibraryLike, owner: str) -> Shelf:
            renamed = library.rename(owner, str(_sent(event, "library")), str(_sent(event, "name") or "").strip())
            return replace(shelf or Shelf(), library=renamed.name)

        return self._shown(request, act, "Renamed.")

    def drop(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Deletes a library of the visitor's with its documents, and shows another of theirs."""

        def act(library: LibraryLike, owner: str) -> Shelf:
            library.remove_library(owner, str(_sent(event, "library")))
            left = next((one.name for one in library.libraries(owner) if not one.is_shared), DEFAULT_LIBRARY)
            return shelf_of(library, owner, left, shelf)

        return self._shown(request, act, "The library is deleted, with its documents and their stored KV.")

    def remove(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Deletes a document of the visitor's."""

        def act(library: LibraryLike, owner: str) -> Shelf:
            library.remove(owner, str(_sent(event, "document")))
            return shelf or Shelf()

        return self._shown(request, act, "Deleted, with its stored KV.")

    def forget(self, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Deletes all documents of the visitor's."""

        def act(library: LibraryLike, owner: str) -> Shelf:
            library.remove_owner(owner)
            return shelf or Shelf()

        return self._shown(request, act, "All your documents are deleted, with their stored KV.")

    def ahead(self, event: gr.EventData, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Has the KV of a document computed ahead, or not."""

        def act(library: LibraryLike, owner: str) -> Shelf:
            (library.resume_kv if _sent(event, "on") else library.cancel_kv)(owner, str(_sent(event, "document")))
            return shelf or Shelf()

        return self._shown(request, act)

    def make(self, request: gr.Request, shelf: Shelf | None, name: Any) -> Outputs:
        """Makes an empty library of the visitor's and shows it."""

        def act(library: LibraryLike, owner: str) -> Shelf:
            return (shelf or Shelf()).of(library.new_library(owner, name if isinstance(name, str) else "").name)

        return self._shown(request, act, "Made. Documents you drop now go there.")

    def refresh(self, request: gr.Request, shelf: Shelf | None) -> Outputs:
        """Returns list and timer, with how far the KV is; the timer stops once nothing is computed any more."""
        try:
            return self._seen(owner_of(request), shelf or Shelf())
        except EngineError:
            # Told where the visitor asks for something; a sentence every second would only hide it.
            return [gr.skip(), gr.Timer(active=False)]

    def begin_upload(self, running: Running | None, paths: list[str] | None) -> Outputs:
        """Returns what is adding documents, their files, what came of them (nothing yet), the status and Cancel."""
        running = running if running is not None and running.is_going_on else Running()
        told = pack(status("busy", "Reading what you dropped."))
        return [running, tuple(map(Path, paths or ())), None, told, gr.Button(visible=True)]

    def upload(self, request: gr.Request, shelf: Shelf | None, paths: tuple[Path, ...], running: Running) -> Iterator[Outputs]:
        """Yields what came of files, status and Cancel while they are added; None came of them where there is no library."""
        told = Taken()
        try:
            for item in items_of(add_all(self.session, owner_of(request), (shelf or Shelf()).library, paths), running):
                told = told.heard(item)
                yield [gr.skip(), pack(status("busy", told.message, told.fraction)), gr.skip()]
            yield [told, gr.skip(), gr.Button(visible=False)]
        except EngineError as error:
            yield [None, failed(error), gr.Button(visible=False)]

    def added(self, request: gr.Request, shelf: Shelf | None, told: Taken | None, running: Running | None) -> Outputs:
        """Shows what was added, over what is looked at by now."""
        if told is None:
            return [gr.skip()] * 5
        *shown, _ = self._shown(request, lambda library, owner: told.opened(shelf or Shelf()))
        return [*shown, pack(status(*told.outcome(running is not None and running.is_stopped)))]

    def cancelled(self, running: Running | None) -> Any:
        """Returns Cancel, pressed; what is being read ends by itself."""
        if running is not None:
            running.stop()
        return gr.Button(visible=False)

    def left(self, request: gr.Request) -> None:
        """Deletes what a visitor uploaded when the page is closed or reloaded."""
        try:
            self.session.library.remove_owner(owner_of(request))
        except EngineError as error:
            # Nobody is left to be told.
            LOG.warning("The documents of a closed page could not be deleted: %s", error)

    def _shown(self, request: gr.Request, act: Callable[[LibraryLike, str], Shelf], message: str = "") -> Outputs:
        """Returns shelf, selector, list, timer and status after `act`, which returns what to look at."""
        try:
            library, owner = self.session.library, owner_of(request)
            shelf = act(library, owner)
            selector = gr.Dropdown(library_choices(library.libraries(owner)), value=shelf.library or DEFAULT_LIBRARY)
            return [shelf, selector, *self._seen(owner, shelf), pack(status("done" if message else "idle", message))]
        except EngineError as error:
            return [*[gr.skip()] * 4, failed(error)]

    def _seen(self, owner: str, shelf: Shelf) -> Outputs:
        library = self.session.library
        return [pack(shelf_data(library, owner, shelf)), gr.Timer(active=is_computing(library.kv_progress(owner)))]


def _first(library: LibraryLike, owner: str) -> str:
    return next((one.name for one in library.libraries(owner) if one.is_shared), DEFAULT_LIBRARY)


def _sent(event: gr.EventData, name: str) -> Any:
    """Returns a value of what a script of the page triggered, None where it is not there."""
    return event._data.get(name) if isinstance(event._data, dict) else None
