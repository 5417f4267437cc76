"""A conversation as a page keeps it: what was asked, what came of it, what the next question builds on. Knows nothing of Gradio."""

import secrets
from dataclasses import dataclass, field, replace
from typing import Literal

from engine.chat.types import ChatMessage, ChatRequest, ChatTurn
from engine.errors import BadRequest
from engine.library.types import Found

# A run takes up to half a megabyte, and two hundred pages may be open.
NUM_RUNS_KEPT = 10
Outcome = Literal["done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where chunks were searched for: documents of a library, as (id, name), out of `num_documents`."""

    library: str
    documents: tuple[tuple[str, str], ...]
    num_documents: int

    @property
    def is_part(self) -> bool:
        """Whether documents were left out."""
        return len(self.documents) < self.num_documents

    @property
    def ids(self) -> tuple[str, ...]:
        """Returns the ids of the documents that were searched."""
        return tuple(document_id for document_id, _ in self.documents)

    @property
    def words(self) -> str:
        """Returns '2 of 5 documents'."""
        return f"{len(self.documents):,} of {self.num_documents:,} documents"


@dataclass(frozen=True, slots=True)
class Ask:
    """A question on its way.

    Args:
        found: the chunks of the request, with what the library knows of them.
        notices: sentences about how they were retrieved.
        scope: where they were searched for, None where nowhere.
    """

    request: ChatRequest
    found: tuple[Found, ...] = ()
    notices: tuple[str, ...] = ()
    scope: Scope | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A question and what came of it.

    Args:
        answer: whole where it is done, else what there was of it.
        message: why there is no whole answer.
        turn: the engine's account of a whole answer; compared: that of the same question asked again beside full prefill.
    """

    ask: Ask
    outcome: Outcome
    answer: str = ""
    message: str = ""
    turn: ChatTurn | None = None
    compared: ChatTurn | None = None

    @property
    def question(self) -> str:
        """Returns the visitor's words."""
        return self.ask.request.question

    @property
    def details(self) -> ChatTurn | None:
        """Returns the account whose run is looked at: the one with full prefill in it where there is one."""
        return self.compared or self.turn


@dataclass(frozen=True, eq=False, slots=True)
class Talk:
    """A conversation.

    Args:
        editing: the entry whose question is being edited; it and all behind it go when the new one is sent.
    """

    name: str = field(default_factory=lambda: secrets.token_hex(8))
    entries: tuple[Entry, ...] = ()
    editing: int | None = None

    def messages(self, question: str) -> tuple[ChatMessage, ...]:
        """Returns what the engine is given: whole turns, and the question. Stopped, failed and wordless ones are not part of it."""
        whole = [entry for entry in self.kept if entry.outcome == "done" and entry.answer.strip()]
        earlier = [ChatMessage(*pair) for entry in whole for pair in (("user", entry.question), ("assistant", entry.answer))]
        return (*earlier, ChatMessage("user", question))

    @property
    def kept(self) -> tuple[Entry, ...]:
        """Returns the entries that stay when the next question is sent."""
        return self.entries if self.editing is None else self.entries[: self.editing]

    def entry(self, index: object) -> Entry:
        """Returns an entry by the number a page sent. Raises BadRequest where there is none."""
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(self.entries):
            raise BadRequest("This turn is not part of the conversation any more; the page shows what is.")
        return self.entries[index]

    def sent(self) -> "Talk":
        """Returns the conversation once the question in the box is on its way."""
        return replace(self, entries=self.kept, editing=None)

    def edited(self, index: int | None) -> "Talk":
        """Returns the conversation with an entry's question being edited, or none."""
        return replace(self, editing=index)

    def without_last(self) -> "Talk":
        """Returns the conversation before its last question."""
        return replace(self, entries=self.entries[:-1], editing=None)

    def with_entry(self, entry: Entry) -> "Talk":
        """Returns the conversation with one more entry; the oldest runs go, their numbers stay."""
        entries = (*self.entries, entry)
        old = len(entries) - NUM_RUNS_KEPT
        return replace(self, entries=tuple(_slim(one) if i < old else one for i, one in enumerate(entries)))

    def with_compared(self, index: int, turn: ChatTurn) -> "Talk":
        """Returns the conversation with an entry's comparison to full prefill."""
        entries = tuple(replace(one, compared=turn) if i == index else one for i, one in enumerate(self.entries))
        return replace(self, entries=entries)


def _slim(entry: Entry) -> Entry:
    """Returns an entry without its run and its prompt, which is most of what it takes in memory."""
    if entry.turn is None or not entry.turn.tokens:
        return entry
    # A comparison needs the run of full prefill: its sentence goes with it.
    return replace(entry, turn=replace(entry.turn, run=None, tokens=(), sources=()), compared=None)
