"""What the session predictor learns from: conversations, every prompt in them labelled by whether the session goes on.

A prompt is what stood before an answer; the session goes on where a person or a tool speaks behind that answer, that is, where another
request of it follows. Conversations come from a file of JSON lines with `messages` (role, content) or ShareGPT's `conversations`
(from, value), from the package chitchat-dataset (MIT), or are told by the scripts of live runs, where all tellings of one script count
as one conversation.
"""

import importlib.util
from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor

from engine.errors import BadRequest
from engine.model.cache import CachePool
from engine.model.decoder import Decoder
from engine.prefix.blocks import TokenType, num_leading
from engine.prefix.live_script import Session, Storyteller
from engine.prefix.predictor_train import Samples
from engine.prefix.roles import KINDS, ChatFormat, Message, Role, TypedTokens
from engine.prefix.workloads.lines import Line, read_lines

_ROLES: dict[object, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("tool", "function", "observation", "function_response"), "tool"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "model", "bard", "bing"), "assistant"),
}
_ASKS = ("user", "tool")
CHITCHAT_PACKAGE, CHITCHAT_FILE = "chitchat_dataset", "dataset.json"
# Openings that are kept apart, a cache each; conversations that open otherwise take turns on one.
MOST_OPENINGS = 12


class Conversation(NamedTuple):
    """Messages in order. name: equal for those that must not be told apart by learning one of them."""

    name: str
    messages: tuple[Message, ...]


class _Utterance(msgspec.Struct):
    sender: str
    text: str


class _Chat(msgspec.Struct):
    """A conversation of chitchat-dataset: what each speaker says in a row is one group."""

    messages: list[list[_Utterance]]


class Prompt(NamedTuple):
    """Everything before an answer, and whether another request of the session follows it."""

    messages: tuple[Message, ...]
    goes_on: bool


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Yields the conversations of a file. Raises BadRequest with file, line and reason."""
    for number, line in enumerate(read_lines(path)):
        yield Conversation(str(number), _messages(line))


def chitchat_conversations() -> Iterator[Conversation]:
    """Yields the answered conversations of the package chitchat-dataset between two people, of whom the first to speak counts as the user.

    Only its file is read; none of its code runs. Raises BadRequest where it is missing or broken.
    """
    found = importlib.util.find_spec(CHITCHAT_PACKAGE)
    if found is None or found.origin is None:
        raise BadRequest("The conversations of chitchat-dataset are not installed; install them with pip install chitchat-dataset.")
    path = Path(found.origin).with_name(CHITCHAT_FILE)
    try:
        chats = msgspec.json.decode(path.read_bytes(), type=dict[str, _Chat])
    except (OSError, msgspec.DecodeError) as error:
        raise BadRequest(f"chitchat-dataset's {path.name} cannot be read ({str(error)[:100]}); install the package anew.") from None
    for name, chat in chats.items():
        said = [group for group in chat.messages if group]
        if len({utterance.sender for group in said for utterance in group}) != 2:
            continue
        first = said[0][0].sender
        roles: list[Role] = ["user" if group[0].sender == first else "assistant" for group in said]
        texts = ["\n".join(utterance.text for utterance in group) for group in said]
        yield Conversation(f"chitchat {name}", tuple(map(Message, roles, texts)))


def told_conversations(num: int, seed: int) -> Iterator[Conversation]:
    """Yields sessions of the live run's scripts."""
    for session in islice(Storyteller(seed, 1.0), num):
        yield Conversation(f"{session.kind} {session.name}", _of_session(session))


def prompts(conversation: Conversation) -> list[Prompt]:
    """Returns the prompts of a conversation in order; answers before anyone has asked have none."""
    messages, found = conversation.messages, []
    for i, message in enumerate(messages):
        before = messages[:i]
        if message.role == "assistant" and any(earlier.role in _ASKS for earlier in before):
            found.append(Prompt(before, any(later.role in _ASKS for later in messages[i + 1 :])))
    return found


class StateReader:
    """Reads the last hidden states of a conversation's prompts off one model.

    Args:
        max_tokens: longer prompts are left out.
        max_turns: prompts of a conversation behind its first so many are left out; 0 for none.
    """

    def __init__(self, decoder: Decoder, chat: ChatFormat, max_tokens: int, max_turns: int = 0) -> None:
        self._decoder, self._chat, self._max_tokens = decoder, chat, min(max_tokens, decoder.spec.max_context)
        self._max_turns = max_turns or None
        self._caches = CachePool(decoder.spec, decoder.dtype, decoder.device)
        # What stands in each cache: conversations that open alike share one, and with it what is computed of their opening.
        self._held: dict[tuple[Message, ...], np.ndarray] = {}

    def samples(self, conversation: Conversation, number: int) -> Samples:
        """Returns the samples of a conversation, on the CPU; `number` stands for it."""
        labels, typed, known = [], [], []
        for turn, prompt in enumerate(prompts(conversation)[: self._max_turns]):
            tokens = self._chat.prompt(prompt.messages)
            if len(tokens) <= self._max_tokens:
                typed.append(tokens)
                labels.append(int(prompt.goes_on))
                known.append((turn, len(tokens), any(message.role in ("tools", "tool") for message in prompt.messages)))
        opening = tuple(takewhile(lambda message: KINDS[message.role] == TokenType.SYSTEM, conversation.messages))
        states = [self._states(group, opening) for group in _nested(typed)]
        hidden = torch.cat(states) if states else torch.zeros(0, self._decoder.spec.hidden_size)
        columns = torch.tensor(labels, dtype=torch.int64), torch.full((len(labels),), number, dtype=torch.int64)
        return Samples(hidden, *columns, torch.tensor(known, dtype=torch.int64).reshape(-1, 3))

    @torch.inference_mode()
    def _states(self, nested: list[TypedTokens], opening: tuple[Message, ...]) -> Tensor:
        """Returns the states float32 [n, hidden] of prompts each of which begins the next, in one pass over the longest.

        What it has in common with the last one of the same opening is not computed again.
        """
        decoder, ids = self._decoder, nested[-1].ids
        role = opening if opening in self._held or len(self._held) < MOST_OPENINGS else ()
        start = min(_num_common(self._held.setdefault(role, ids[:0]), ids), len(nested[0]) - 1)
        cache = self._caches.get(f"predictor {list(self._held).index(role)}", self._max_tokens)
        rows, hidden = decoder.rows(torch.arange(start, len(ids))), decoder.embed(torch.from_numpy(ids[start:]))
        self._held[role] = ids[:start]
        for layer in range(decoder.spec.num_layers):
            hidden = decoder.run_layer(layer, hidden, rows, cache)
        self._held[role] = ids
        # Cloned, as what is made in inference mode cannot be learned from.
        ends = torch.tensor([len(tokens) - 1 - start for tokens in nested], device=decoder.device)
        states = hidden[ends].float().cpu()
        with torch.inference_mode(False):
            return states.clone()


def _num_common(a: np.ndarray, b: np.ndarray) -> int:
    """Returns how many leading ids two prompts have in common."""
    num = min(len(a), len(b))
    return num_leading(a[:num] == b[:num])


def joined(parts: list[Samples]) -> Samples:
    """Returns all samples in one; at least one part."""
    return Samples(*(torch.cat(columns) for columns in zip(*parts, strict=True)))


def _nested(typed: list[TypedTokens]) -> Iterator[list[TypedTokens]]:
    """Yields runs of prompts each of which begins the next."""
    run: list[TypedTokens] = []
    for tokens in typed:
        if run and not np.array_equal(tokens.ids[: len(run[-1])], run[-1].ids):
            yield run
            run = []
        run.append(tokens)
    if run:
        yield run


def _messages(line: Line) -> tuple[Message, ...]:
    field = next((name for name in ("messages", "conversations") if name in line.value), None)
    if field is None:
        raise line.broken("holds neither 'messages' nor 'conversations'")
    found = []
    for item in line.items(field):
        role = item.get("role", item.get("from")) if isinstance(item, dict) else None
        text = item.get("content", item.get("value")) if isinstance(item, dict) else None
        if role not in _ROLES:
            raise line.broken(f"the role {role!r} is unknown; known ones are: {', '.join(map(str, _ROLES))}")
        found.append(Message(_ROLES[role], text if isinstance(text, str) else ""))
    return tuple(found)


def _of_session(session: Session) -> tuple[Message, ...]:
    turns = [message for turn in session.turns for message in (turn.asks, Message("assistant", turn.answer))]
    return (*session.opening, *turns)
