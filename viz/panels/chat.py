"""The Chat tab: a conversation over a library. Earlier turns are prefix hits, retrieved chunks are fused. Builds and wires."""

from typing import Any

import gradio as gr

from viz.panels.chat_callbacks import ChatCallbacks
from viz.panels.chat_controls import Conversation, build_conversation, live_policies, method_rule
from viz.panels.chat_library import LibraryColumn, build_library, wire_library
from viz.panels.chat_library_callbacks import LibraryCallbacks
from viz.panels.contract import SessionLike
from viz.panels.fuse import ENGINE, QUIET
from viz.panels.run_viewer import RunViewer

# The public endpoints are called `answer` and `compare`, so that no event here may be.
TO_TOP = "() => window.scrollTo({ top: 0 })"
# Back at the answer whose run was looked at, with the keyboard on the button that led away.
TO_ANSWER = """() => requestAnimationFrame(() => {
  const left = document.querySelector("#chat-thread [data-looked-at]");
  if (!left) return;
  left.scrollIntoView({ block: "center" });
  left.focus({ preventScroll: true });
})"""


def build_chat(session: SessionLike, viewer: RunViewer, tab: gr.Tab, tabs: gr.Tabs, page: gr.Blocks) -> None:
    """Builds the tab and wires it; `viewer` shows the run of an answer. Call inside `tab`."""
    with gr.Row(elem_id="chat-columns"):
        with gr.Column(scale=0, min_width=400, elem_id="chat-library-column", elem_classes="fs-panel"):
            library = build_library()
        with gr.Column(scale=1, min_width=320, elem_id="chat-main"):
            talk = build_conversation(session)
    changed = wire_library(LibraryCallbacks(session), library, tab, page, QUIET)
    _Wiring(ChatCallbacks(session, live_policies()), LibraryCallbacks(session), talk, library).wire(changed, viewer, tabs)


class _Wiring:
    """Connects the conversation's components to its callbacks; what it keeps is needed while the page is built only."""

    def __init__(self, calls: ChatCallbacks, shelves: LibraryCallbacks, parts: Conversation, library: LibraryColumn) -> None:
        self.calls, self.shelves, self.parts, self.library = calls, shelves, parts, library
        self.talk, self.ask, self.running = gr.State(None), gr.State(None), gr.State(None)

    def wire(self, changed: tuple[gr.events.Dependency, ...], viewer: RunViewer, tabs: gr.Tabs) -> None:
        """Connects everything."""
        calls, parts, talk = self.calls, self.parts, self.talk
        for event in changed:
            event.then(calls.show, [talk, self.library.name], [parts.thread], queue=False, **QUIET)
        self._wire_answers()
        self._wire_comparison()
        # The model may have come, or become another, since the page was opened.
        changed[0].then(self.calls.session.model_line, None, [parts.model_line], queue=False, **QUIET)
        parts.thread.edit(calls.edit, [talk, self.running], self._begun, queue=False, **QUIET)
        parts.thread.cite(self.shelves.cite, [self.library.shelf], self.library.shown, queue=False, **QUIET)
        parts.stop.click(calls.stopped, [self.running], [parts.stop], queue=False, **QUIET)
        parts.new.click(calls.new, [self.running, self.library.name], self._begun, queue=False, **QUIET)
        parts.model.input(calls.load_model, [parts.model], [parts.status, parts.model_line], **QUIET, **ENGINE)
        parts.method.input(_ruled, [parts.method], [parts.method], queue=False, **QUIET)
        shown = parts.thread.details(calls.details, [talk], [viewer.run, viewer.lent, viewer.status, tabs], queue=False, **QUIET)
        viewer.show_run(shown)
        shown.then(None, js=TO_TOP, **QUIET)
        returned = viewer.back.click(_to_chat, None, [tabs], queue=False, **QUIET)
        returned.then(None, js=TO_ANSWER, **QUIET)

    @property
    def _begun(self) -> list[gr.blocks.Block]:
        parts = self.parts
        shown = [parts.thread, parts.live, parts.status, parts.question, parts.send, parts.stop]
        return [self.talk, self.ask, self.running, *shown]

    def _wire_answers(self) -> None:
        calls, parts = self.calls, self.parts
        form = [self.talk, self.running, *parts.form(self.library.name, self.library.shelf)]
        out = [self.talk, self.ask, parts.thread, parts.live, parts.send, parts.stop, parts.prefix]
        quick: dict[str, Any] = {"queue": False, **QUIET}
        begun = (
            gr.on([parts.send.click, parts.question.submit], calls.begin, form, self._begun, **quick),
            parts.thread.ask(calls.ask, form, self._begun, **quick),
            parts.thread.retry(calls.retry, form, self._begun, **quick),
        )
        for event in begun:
            answered = event.then(calls.answer, [self.talk, self.ask, self.running], out, api_name="chat_answer", **QUIET, **ENGINE)
            answered.failure(calls.ended_early, [self.talk, self.ask, self.running], out, **quick)
            answered.then(self.shelves.refresh, [self.library.shelf], [self.library.documents, self.library.timer], **quick)
            answered.then(calls.session.model_line, None, [parts.model_line], **quick)

    def _wire_comparison(self) -> None:
        calls, parts, index = self.calls, self.parts, gr.State(None)
        begun_out = [index, self.running, parts.status, parts.send, parts.stop]
        begun = parts.thread.compare(calls.compare, [self.talk, self.running], begun_out, queue=False, api_name="chat_compare", **QUIET)
        out = [self.talk, parts.thread, parts.status, parts.send, parts.stop]
        begun.then(calls.compared, [self.talk, index, self.running], out, **QUIET, **ENGINE)


def _to_chat() -> Any:
    """Returns the tabs, turned to the conversation."""
    return gr.Tabs(selected="chat")


def _ruled(name: Any) -> Any:
    """Returns the cache mode's selector with the mode's own sentence."""
    return gr.Dropdown(info=method_rule(name))
