"""What happens in the conversation of the Chat tab: parse, one session call, values to show. Components are named in chat.py."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from engine.chat.types import ChatRequest, ChatStatus, ChatToken, ChatTurn
from engine.errors import BadRequest, EngineError, UnknownName
from engine.scenarios import Scenario
from viz.panels.chat_form import ChatForm, ask_of
from viz.panels.chat_talk import Ask, Entry, Talk
from viz.panels.chat_view import STOPPED, editing_words, live_data, offer_data, prefix_words, thread_data
from viz.panels.chat_visitor import owner_of
from viz.panels.chat_work import Running, items_of
from viz.panels.contract import SessionLike
from viz.panels.fuse_view import method_named, status
from viz.panels.live import failed
from viz.panels.players import pack
from viz.panels.request_form import parse_model_name

Outputs = list[Any]
MIN_GAP_S = 0.2
BUSY = "An answer is on its way; wait for it or press Stop."
NUM_ANSWER = 7


@dataclass(frozen=True, slots=True)
class ChatCallbacks:
    """Callbacks of one page; holds nothing of a visitor."""

    session: SessionLike
    policies: tuple[str, ...]

    def begin(self, request: gr.Request, talk: Talk | None, running: Running | None, *form: Any) -> Outputs:
        """Returns talk, ask, running, thread, live, status, question, Send and Stop; the ask is None where the form does not hold."""
        talk = talk or Talk()
        try:
            _check_idle(running)
            if talk.editing is not None and not str(form[0] or "").strip():
                return self._edited(talk, None)
            ask = ask_of(ChatForm(*form), talk, self.session.library, owner_of(request), self.session.method_names(), self.policies)
        except EngineError as error:
            return [gr.skip(), None, *[gr.skip()] * 3, failed(error), *[gr.skip()] * 3]
        talk = talk.sent()
        live = live_data(ask, message="Waiting for the engine; it serves one request at a time.")
        return [talk, ask, Running(), pack(thread_data(talk)), pack(live), pack(status("idle", "")), "", *_buttons(True)]

    def ask(self, event: gr.EventData, request: gr.Request, talk: Talk | None, running: Running | None, *form: Any) -> Outputs:
        """Returns what `begin` returns, for a question on offer."""
        return self.begin(request, talk, running, (event._data or {}).get("question"), *form[1:])

    def retry(self, request: gr.Request, talk: Talk | None, running: Running | None, *form: Any) -> Outputs:
        """Returns what `begin` returns, for the last question, with what is set now; its answer goes once that holds."""
        talk = talk or Talk()
        question = talk.entries[-1].question if talk.entries else ""
        return [*self.begin(request, talk.edited(len(talk.entries) - 1 if talk.entries else None), running, question, *form[1:])]

    def answer(self, talk: Talk, ask: Ask | None, running: Running | None) -> Iterator[Outputs]:
        """Yields talk, ask, thread, live, Send, Stop and the line on the prefix cache while a question is answered."""
        if ask is None or running is None:
            yield [gr.skip()] * NUM_ANSWER
            return
        told = _Told()
        try:
            for _ in _heard(self.session, ask.request, running, told):
                yield [*[gr.skip()] * 3, pack(live_data(ask, told.answer, told.message, told.fraction)), *[gr.skip()] * 3]
            entry = _ended(ask, told)
        except EngineError as error:
            entry = Entry(ask, "failed", told.answer, str(error))
        if running.is_dropped:
            yield [gr.skip()] * NUM_ANSWER
            return
        talk = talk.with_entry(entry)
        yield [talk, None, pack(thread_data(talk)), None, *_buttons(False), pack(prefix_words(self.session.prefix_stats()))]

    def ended_early(self, talk: Talk | None, ask: Ask | None, running: Running | None) -> Outputs:
        """Returns what `answer` yields after one that broke off; the question stays, to be asked again."""
        if ask is None or running is None:
            return [gr.skip()] * NUM_ANSWER
        running.end()
        entry = Entry(ask, "failed", "", "The answer broke off before it was whole; press Retry to ask again.")
        talk = (talk or Talk()).with_entry(entry)
        return [talk, None, pack(thread_data(talk)), None, *_buttons(False), gr.skip()]

    def stopped(self, running: Running | None) -> Any:
        """Returns Stop, pressed; what ran says the rest itself."""
        if running is not None:
            running.stop()
        return gr.Button(interactive=False)

    def new(self, running: Running | None, library: str | None) -> Outputs:
        """Returns what `begin` returns, of an empty conversation; an answer on its way is dropped."""
        if running is not None:
            running.drop()
        talk = Talk()
        return [talk, None, None, self._thread(talk, library), None, pack(status("idle", "")), "", *_buttons(False)]

    def show(self, talk: Talk | None, library: str | None) -> Any:
        """Returns the thread with questions of the library on offer, unless something was asked already."""
        return gr.skip() if talk is not None and talk.entries else self._thread(Talk(), library)

    def edit(self, event: gr.EventData, talk: Talk | None, running: Running | None) -> Outputs:
        """Returns what `begin` returns, with an earlier question in the box."""
        try:
            _check_idle(running)
            index = (event._data or {}).get("turn")
            (talk or Talk()).entry(index)
        except EngineError as error:
            return [*[gr.skip()] * 5, failed(error), *[gr.skip()] * 3]
        return self._edited(talk, index)

    def compare(self, event: gr.EventData, talk: Talk | None, running: Running | None) -> Outputs:
        """Returns index, running and status of a comparison to full prefill; the index is None where there is nothing to compare."""
        try:
            _check_idle(running)
            index = (event._data or {}).get("turn")
            entry = (talk or Talk()).entry(index)
            if entry.turn is None or not entry.ask.found:
                raise BadRequest("Only an answer over chunks can be compared; ask over a library first.")
        except EngineError as error:
            return [None, gr.skip(), failed(error), gr.skip(), gr.skip()]
        return [index, Running(), pack(status("busy", "Asking again, beside full prefill.")), *_buttons(True)]

    def compared(self, talk: Talk, index: int | None, running: Running | None) -> Iterator[Outputs]:
        """Yields talk, thread, status, Send and Stop while a question is asked again, by its method and by full prefill."""
        if index is None or running is None:
            yield [gr.skip()] * 5
            return
        told = _Told()
        try:
            for _ in _heard(self.session, replace(talk.entries[index].ask.request, compare=True), running, told):
                yield [gr.skip(), gr.skip(), pack(status("busy", told.message or "Comparing", told.fraction)), gr.skip(), gr.skip()]
        except EngineError as error:
            yield [gr.skip(), gr.skip(), failed(error), *_buttons(False)]
            return
        if told.turn is None:
            yield [*[gr.skip()] * 2, gr.skip() if running.is_dropped else pack(status("idle", "Not compared.")), *_buttons(False)]
            return
        talk = talk.with_compared(index, told.turn)
        yield [talk, pack(thread_data(talk)), pack(status("idle", "")), *_buttons(False)]

    def details(self, event: gr.EventData, talk: Talk | None) -> Outputs:
        """Returns the run of an answer for the Fuse tab, as what is shown and as what is lent, its status, and the tabs, turned to it."""
        try:
            entry = (talk or Talk()).entry((event._data or {}).get("turn"))
            if entry.details is None or entry.details.run is None:
                raise BadRequest("The run of this answer is not kept any more; ask again to have one.")
        except EngineError as error:
            raise gr.Error(str(error), title="Nothing to show", print_exception=False) from error
        told, run = status("done", "The run of the chat's answer is shown."), entry.details.run
        return [run, run, pack(told), gr.Tabs(selected="fuse")]

    def load_model(self, name: Any) -> Iterator[Outputs]:
        """Yields status and model line while a model loads; the current one stays where that fails."""
        try:
            wanted = parse_model_name(name)
            yield [pack(status("busy", f"Loading {wanted}; this can take a minute.")), gr.skip()]
            yield [pack(status("done", self.session.select_model(wanted))), self.session.model_line()]
        except EngineError as error:
            yield [failed(error), self.session.model_line()]

    def _edited(self, talk: Talk, index: int | None) -> Outputs:
        talk = talk.edited(index)
        question = "" if index is None else talk.entries[index].question
        return [talk, None, gr.skip(), pack(thread_data(talk)), None, pack(status("idle", editing_words(talk))), question, *_buttons(False)]

    def _thread(self, talk: Talk, library: str | None) -> Any:
        scenario = self._scenario(library)
        return pack(thread_data(talk, offer_data(scenario.title if scenario else library or "your documents", scenario)))

    def _scenario(self, library: str | None) -> Scenario | None:
        try:
            return self.session.scenario(library or "")
        except UnknownName:
            return None


class _Told:
    """What the engine has told of one turn so far, and when it is time to show it: about five times a second."""

    def __init__(self) -> None:
        self.answer, self.message, self.fraction, self.turn = "", "", 0.0, None
        self._shown_s = 0.0

    def hear(self, item: ChatStatus | ChatToken | ChatTurn | None) -> None:
        """Takes in one item of the stream, or a second of silence."""
        if isinstance(item, ChatToken):
            self.answer, self.message = self.answer + item.text, "Writing the answer."
        elif isinstance(item, ChatStatus):
            self.message, self.fraction = method_named(item.message), item.fraction
        elif item is not None:
            self.turn: ChatTurn | None = item

    def is_time(self) -> bool:
        """Whether enough time has passed since the last showing; notes this one."""
        now = time.monotonic()
        if now - self._shown_s < MIN_GAP_S:
            return False
        self._shown_s = now
        return True


def _heard(session: SessionLike, request: ChatRequest, running: Running, told: _Told) -> Iterator[None]:
    """Has a turn answered in a thread of its own, and yields whenever it is time to show what was told."""

    def work(put: Callable[[Any], None], is_over: Callable[[], bool]) -> None:
        with closing(session.chat(request, is_over)) as items:
            for item in items:
                put(item)

    for item in items_of(work, running):
        told.hear(item)
        if told.is_time():
            yield


def _ended(ask: Ask, told: _Told) -> Entry:
    if told.turn is None:
        return Entry(ask, "stopped", told.answer, STOPPED)
    return Entry(ask, "done", told.turn.answer, turn=told.turn)


def _check_idle(running: Running | None) -> None:
    if running is not None and running.is_going_on:
        raise BadRequest(BUSY)


def _buttons(running: bool) -> list[Any]:
    """Returns Send and Stop as they are while an answer is on its way, or none is."""
    return [gr.Button(interactive=not running), gr.Button(interactive=running)]
