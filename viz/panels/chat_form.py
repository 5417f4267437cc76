"""From what the visitor entered to a question on its way: its chunks retrieved, its request checked. Knows nothing of Gradio."""

from dataclasses import dataclass
from typing import Any

from engine.chat.types import ChatRequest
from engine.errors import BadRequest
from engine.library.types import Found
from engine.types import MAX_QUESTION_CHARS
from viz import theme
from viz.panels.chat_shelf import Shelf
from viz.panels.chat_talk import Ask, Scope, Talk
from viz.panels.contract import LibraryLike
from viz.panels.request_form import number, whole

MAX_CHUNKS = 12
ITS_OWN = "the answer is the model's own"


@dataclass(frozen=True, slots=True)
class ChatForm:
    """The inputs as the browser sent them; any of them may be None or of a wrong type. What is looked at, `shelf`, stays on the server."""

    question: Any
    library: Any
    method: Any
    ratio: Any
    num_chunks: Any
    max_new_tokens: Any
    temperature: Any
    seed: Any
    policy: Any
    shelf: Shelf | None = None


def ask_of(form: ChatForm, talk: Talk, library: LibraryLike, owner: str, methods: tuple[str, ...], policies: tuple[str, ...]) -> Ask:
    """Returns the question of a form with its chunks. Raises EngineError with one sentence for the visitor."""
    question = _question(form.question)
    method = _known("cache mode", form.method, methods)
    scope, notices = _scope(form, library, owner)
    found: tuple[Found, ...] = ()
    if scope is not None:
        found, notices = _retrieve(question, int(form.num_chunks), talk, library, owner, scope)
    request = ChatRequest(
        messages=talk.messages(question),
        chunks=tuple(one.chunk for one in found),
        method=method,
        ratio=number("recompute ratio", form.ratio),
        max_new_tokens=whole("answer length", form.max_new_tokens),
        temperature=number("temperature", form.temperature),
        seed=whole("seed", form.seed),
        conversation=talk.name,
        policy=_known("policy", form.policy, policies) if form.policy else None,
    )
    return Ask(request, found, notices, scope)


def _scope(form: ChatForm, library: LibraryLike, owner: str) -> tuple[Scope | None, tuple[str, ...]]:
    """Returns where to search, or None and why nowhere."""
    num = whole("number of chunks", form.num_chunks)
    if not 0 <= num <= MAX_CHUNKS:
        raise BadRequest(f"The number of chunks is {num}; it must be from 0 to {MAX_CHUNKS}.")
    name = form.library if isinstance(form.library, str) else ""
    if num == 0:
        return None, (f"No chunk was asked for: {ITS_OWN}.",)
    if name not in {one.name for one in library.libraries(owner)}:
        return None, (f"The library is empty: {ITS_OWN}. Add a document at the left.",)
    documents = library.documents(owner, name)
    left_out = form.shelf.left_out if form.shelf else frozenset()
    searched = tuple((one.document_id, one.title or one.name) for one in documents if one.document_id not in left_out)
    if documents and not searched:
        return None, (f"None of the library's documents is ticked: {ITS_OWN}. Tick those to search in at the left.",)
    return Scope(name, searched, len(documents)), ()


def _retrieve(
    question: str, num: int, talk: Talk, library: LibraryLike, owner: str, scope: Scope
) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Returns the chunks for a question, best first, and what is to be said about them.

    A question that leans on the one before ("And when?") may share no word with any chunk: then that one is searched for as well.
    """

    def search(words: str) -> tuple[Found, ...]:
        return library.search(owner, scope.library, words, num, scope.ids if scope.is_part else None)

    where = f"the documents that are ticked ({scope.words})" if scope.is_part else "the library"
    none = f"No chunk of {where} shares a word with the question: {ITS_OWN}."
    found = search(question)
    if found or not talk.kept:
        return found, () if found else (none,)
    found = search(f"{talk.kept[-1].question} {question}")
    if found:
        return found, ("No chunk shares a word with the question, so the question before it was searched for as well.",)
    return (), (none,)


def _question(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise BadRequest("The question is empty; type one, or press one of those on offer.")
    if len(text) > MAX_QUESTION_CHARS:
        raise BadRequest(f"The question has {len(text):,} characters; at most {MAX_QUESTION_CHARS:,} are allowed, so shorten it.")
    return text


def _known(what: str, value: Any, names: tuple[str, ...]) -> str:
    if value not in names:
        raise BadRequest(f"Unknown {what} {str(value)[:40]!r}; known ones are: {', '.join(map(theme.method_label, names))}.")
    return str(value)
