"""The left column of the Chat tab: what can be asked about, and the visitor's own documents. Builds and wires."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from viz.panels.chat_library_callbacks import LibraryCallbacks
from viz.panels.chat_players import chat_player
from viz.panels.parts import heading
from viz.panels.players import player

SECONDS_BETWEEN_LOOKS = 1.0
DROP_HINT = "<p class='fs-chat-fine'>PDF, Word, Markdown, text, HTML or CSV; kept on this server only, until you close the page.</p>"


@dataclass(frozen=True, slots=True)
class LibraryColumn:
    """The components of the column.

    Args:
        shelf: what is looked at; name: the library asked about.
    """

    shelf: gr.State
    name: gr.Dropdown
    drop: gr.File
    status: gr.HTML
    cancel: gr.Button
    documents: gr.HTML
    new_name: gr.Textbox
    make: gr.Button
    timer: gr.Timer

    @property
    def shown(self) -> list[gr.blocks.Block]:
        """Returns the outputs of the callbacks that change what is looked at."""
        return [self.shelf, self.name, self.documents, self.timer, self.status]


def build_library() -> LibraryColumn:
    """Builds the column. Call inside a gr.Column."""
    heading("Your documents")
    gr.HTML(DROP_HINT, apply_default_css=False, js_on_load=None)
    # Any file is let in: the library says what it does not take and why, where Gradio would only say that it failed.
    drop = gr.File(
        label="Drop your own files here",
        show_label=False,
        file_count="multiple",
        type="filepath",
        height=110,
        elem_id="chat-drop",
    )
    with gr.Row(elem_id="chat-upload-line"):
        status = player("status", "chat-upload-status", "Upload")
        cancel = gr.Button("Cancel", elem_id="chat-upload-cancel", size="md", scale=0, min_width=100, visible=False)
    name = gr.Dropdown([], label="Ask about", elem_id="chat-library-name", filterable=False)
    documents = chat_player("library", "chat-documents", "Documents and chunks")
    with gr.Accordion("Another library of your own", open=False, elem_id="chat-new-library"), gr.Row(elem_classes="fs-buttons"):
        new_name = gr.Textbox(label="Name", max_lines=1, elem_id="chat-new-name", min_width=160, scale=2)
        make = gr.Button("Make", elem_id="chat-new-make", min_width=80, scale=1)
    timer = gr.Timer(SECONDS_BETWEEN_LOOKS, active=False)
    return LibraryColumn(gr.State(None), name, drop, status, cancel, documents, new_name, make, timer)


def wire_library(
    calls: LibraryCallbacks, column: LibraryColumn, tab: gr.Tab, page: gr.Blocks, quiet: dict[str, Any]
) -> tuple[gr.events.Dependency, ...]:
    """Wires the column and returns the events after which another library may be asked about."""
    shelf, shown = [column.shelf], column.shown
    opened = tab.select(calls.open_tab, shelf, shown, queue=False, **quiet)
    column.documents.open(calls.open, shelf, shown, queue=False, **quiet)
    column.documents.leaf(calls.leaf, shelf, shown, queue=False, **quiet)
    column.documents.remove(calls.remove, shelf, shown, queue=False, **quiet)
    column.documents.forget(calls.forget, shelf, shown, queue=False, **quiet)
    column.documents.ahead(calls.ahead, shelf, shown, queue=False, **quiet)
    # Sent whole each time, so that of many quick ticks the last says it all.
    column.documents.tick(calls.tick, shelf, shown, queue=False, trigger_mode="always_last", **quiet)
    renamed = column.documents.rename(calls.rename, shelf, shown, queue=False, **quiet)
    dropped = column.documents.drop(calls.drop, shelf, shown, queue=False, **quiet)
    made = gr.on([column.make.click, column.new_name.submit], calls.make, [*shelf, column.new_name], shown, queue=False, **quiet)
    made.then(lambda: "", None, [column.new_name], queue=False, **quiet)
    column.timer.tick(calls.refresh, shelf, [column.documents, column.timer], queue=False, **quiet)
    # The library waits for no engine, so that files can be added while a question is answered.
    running, paths, taken = gr.State(None), gr.State(()), gr.State(None)
    begun_out = [running, paths, taken, column.status, column.cancel]
    begun = column.drop.upload(calls.begin_upload, [running, column.drop], begun_out, queue=False, trigger_mode="multiple", **quiet)
    # Emptied in the page itself: an answer of the server's would come late and take along what was dropped meanwhile.
    column.drop.upload(None, None, [column.drop], js="() => null", queue=False, trigger_mode="multiple", **quiet)
    # Files that are dropped while others are read must not be passed over.
    each: dict[str, Any] = {"trigger_mode": "multiple", **quiet}
    read = begun.then(calls.upload, [*shelf, paths, running], [taken, column.status, column.cancel], concurrency_limit=4, **each)
    added = read.then(calls.added, [*shelf, taken, running], shown, queue=False, **each)
    column.cancel.click(calls.cancelled, [running], [column.cancel], queue=False, **quiet)
    page.unload(calls.left)
    chosen = column.name.input(calls.choose, [*shelf, column.name], shown, queue=False, **quiet)
    return opened, made, renamed, dropped, added, chosen
