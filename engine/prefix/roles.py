"""Conversations as token ids with a type each: from the roles of the model's own chat template, and thinking from <think> spans.

Text of messages never reaches the template and cannot become a special token: the template is rendered around marks, which are
cut out again. Every piece is tokenised by itself, so a longer conversation begins with the very ids of a shorter one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from engine.errors import BadRequest
from engine.model.template import opening, rendered
from engine.prefix.blocks import TokenType
from engine.prefix.workloads.stream import block_kinds

Role = Literal["system", "tools", "user", "tool", "assistant"]
# Developer and function messages under their usual names; schemas of tools are part of the system text.
KINDS: dict[Role, TokenType] = {
    "system": TokenType.SYSTEM,
    "tools": TokenType.SYSTEM,
    "user": TokenType.USER,
    "tool": TokenType.TOOL_OUTPUT,
    "assistant": TokenType.RESPONSE,
}
# Where the template has opened the thought already, the answer begins within it.
_THINK = re.compile(r"\A(?:(?!<think>).)*?</think>\s*|<think>.*?(?:</think>\s*|$)", re.DOTALL)
_MARK = "<<<message {}>>>"
_PIECES_KEPT = 4_096


class Message(NamedTuple):
    """One message of a conversation; an assistant's text may hold <think> spans."""

    role: Role
    text: str


@dataclass(frozen=True, eq=False, slots=True)
class TypedTokens:
    """Token ids int64 [n] and their types uint8 [n], each a TokenType."""

    ids: np.ndarray
    kinds: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def __add__(self, other: "TypedTokens") -> "TypedTokens":
        return TypedTokens(np.concatenate([self.ids, other.ids]), np.concatenate([self.kinds, other.kinds]))

    def __getitem__(self, span: slice) -> "TypedTokens":
        return TypedTokens(self.ids[span], self.kinds[span])

    def block_keys(self, block_tokens: int) -> list[bytes]:
        """Returns what each full block holds."""
        return [self.ids[i : i + block_tokens].tobytes() for i in range(0, len(self.ids) - block_tokens + 1, block_tokens)]

    def block_kinds(self, block_tokens: int) -> list[int]:
        """Returns the type of each full block: the majority's."""
        return block_kinds(self.kinds, block_tokens)


def typed(ids: np.ndarray, kind: TokenType) -> TypedTokens:
    """Returns ids int [n] that are all of one type."""
    return TypedTokens(np.asarray(ids, np.int64), np.full(len(ids), kind, np.uint8))


def without_thinking(text: str) -> str:
    """Returns an answer as later prompts repeat it."""
    return _THINK.sub("", text)


def typed_answer(ids: Sequence[int], pieces: Sequence[str]) -> TypedTokens:
    """Returns generated ids [n] with their types: COT from <think> to </think>, or to the end where it is not closed.

    Args:
        pieces: the text of each id; a token that lies in a thought with any character counts as thinking.
    """
    answer = typed(np.asarray(ids, np.int64), TokenType.RESPONSE)
    ends = np.cumsum([len(piece) for piece in pieces])
    starts = ends - [len(piece) for piece in pieces]
    for thought in _THINK.finditer("".join(pieces)):
        answer.kinds[(ends > thought.start()) & (starts < thought.end())] = TokenType.COT
    return answer


class ChatFormat:
    """Turns conversations of one model into typed prompts.

    Args:
        tokenizer: with the chat template; without one, roles are written out as words.
        tokenize: text and whether its special tokens count as such -> ids int64 [n].
    """

    def __init__(self, tokenizer: object, tokenize: Callable[[str, bool], np.ndarray]) -> None:
        self._tokenizer, self._tokenize = tokenizer, tokenize
        self._pieces: dict[tuple[str, bool], np.ndarray] = {}

    def prompt(self, messages: Sequence[Message]) -> TypedTokens:
        """Returns the prompt that asks for the next answer; thoughts in earlier ones are left out. Raises BadRequest.

        What the template writes between two messages counts as the latter's, what it writes at the end as the answer's.
        """
        joined = _joined(messages)
        rendered = self._render(joined)
        parts, rest = [], rendered
        for i, message in enumerate(joined):
            before, rest = rest.split(_MARK.format(i))
            text = without_thinking(message.text) if message.role == "assistant" else message.text
            parts += [typed(self._ids(before, True), KINDS[message.role]), typed(self._ids(text, False), KINDS[message.role])]
        parts.append(typed(self._ids(rest, True), TokenType.RESPONSE))
        return TypedTokens(np.concatenate([p.ids for p in parts]), np.concatenate([p.kinds for p in parts]))

    def answer(self, text: str) -> TypedTokens:
        """Returns a written answer, what stands between <think> marks as thinking."""
        parts, end = [typed(np.zeros(0, np.int64), TokenType.RESPONSE)], 0
        for thought in _THINK.finditer(text):
            parts += [typed(self._ids(text[end : thought.start()], False), TokenType.RESPONSE)]
            parts += [typed(self._ids(thought[0], False), TokenType.COT)]
            end = thought.end()
        parts.append(typed(self._ids(text[end:], False), TokenType.RESPONSE))
        return TypedTokens(np.concatenate([p.ids for p in parts]), np.concatenate([p.kinds for p in parts]))

    def _ids(self, text: str, special: bool) -> np.ndarray:
        found = self._pieces.get((text, special))
        if found is None:
            if len(self._pieces) >= _PIECES_KEPT:
                self._pieces.clear()
            found = self._tokenize(text, special)
            self._pieces[text, special] = found
        return found

    def _render(self, messages: Sequence[Message]) -> str:
        """Returns the template's text with a mark for each message, which occur once each and in order. Raises BadRequest."""
        if not getattr(self._tokenizer, "chat_template", None):
            spoken = "".join(f"{message.role}: {_MARK.format(i)}\n\n" for i, message in enumerate(messages))
            return f"{opening(self._tokenizer)}{spoken}assistant:"
        # Templates without a role for tools, or without any but the two speakers, say so by raising or leave the text out.
        for stand_ins in ({}, {"tool": "user"}, {"tool": "user", "system": "user"}):
            marked = [{"role": stand_ins.get(message.role, message.role), "content": _MARK.format(i)} for i, message in enumerate(messages)]
            text = rendered(self._tokenizer, marked, add_generation_prompt=True)
            if text is None:
                continue
            places = [text.find(_MARK.format(i)) for i in range(len(messages))]
            if min(places) >= 0 and places == sorted(places) and all(text.count(_MARK.format(i)) == 1 for i in range(len(messages))):
                return text
        raise BadRequest("The model's chat template cannot hold these messages in their order; choose a model with an ordinary one.")


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Returns the messages with schemas of tools made part of the system text. Raises BadRequest."""
    if not any(message.role in ("user", "tool") for message in messages):
        raise BadRequest(f"The conversation of {len(messages)} messages asks nothing; add a message of the user.")
    for message in messages:
        if message.role not in KINDS:
            raise BadRequest(f"The role {message.role!r} is unknown; known ones are: {', '.join(KINDS)}.")
    system = [message.text for message in messages if KINDS[message.role] == TokenType.SYSTEM]
    others = [message for message in messages if KINDS[message.role] != TokenType.SYSTEM]
    return [Message("system", "\n\n".join(system)), *others] if system else others
