"""Turns conversations with their text into a workload: tokenised, typed by role, one request for every answer.

Takes JSON lines with `messages` (role, content) or ShareGPT's `conversations` (from, value), a JSON array of tau-bench trajectories
(`traj`), and LMCache's agent calls (`timestamp, input, output, session_id`). Where no times are recorded, starts are drawn from a
Poisson process and gaps from the log-normal fits of 2605.18825.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.prefix.blocks import TokenType
from engine.prefix.workloads.arrivals import poisson
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.items import read_objects
from engine.prefix.workloads.lines import Line
from engine.prefix.workloads.sessions import AGENT_GAP, CHAT_GAP
from engine.prefix.workloads.stream import block_kinds
from engine.prefix.workloads.workload import Workload

BLOCK_TOKENS, MEAN_START_GAP_S = 16, 5.0
Tokenize = Callable[[str], Sequence[int]]
_ROLES = {
    **dict.fromkeys(("system", "developer"), TokenType.SYSTEM),
    **dict.fromkeys(("user", "human"), TokenType.USER),
    **dict.fromkeys(("tool", "function", "observation", "function_response"), TokenType.TOOL_OUTPUT),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "model", "bard", "bing"), TokenType.RESPONSE),
}
_PIECE = re.compile(r"\w{1,6}|[^\w\s]")
_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)
_LABEL = re.compile(r"(?:^|\n\n)(system|user|assistant|tool): ")


class Message(NamedTuple):
    """A piece of a conversation and what its tokens are."""

    kind: TokenType
    text: str


def read_chats(path: Path, seed: int, tokenize: Tokenize | None = None, progress: Callable[[int], bool] | None = None) -> Workload:
    """Returns the workload of a file of conversations. Raises BadRequest with file, line and reason, Cancelled.

    Args:
        tokenize: of the model that is to serve them; without it words are cut into pieces of up to six letters.
    """
    rng = np.random.default_rng(seed)
    builder, starts = WorkloadBuilder(path.name, BLOCK_TOKENS), poisson(MEAN_START_GAP_S)(rng)
    add = _Adder(builder, tokenize or word_pieces())
    for number, line in enumerate(read_objects(path, progress)):
        if "input" in line.value:
            time_s = line.number("timestamp") / 1e6
            add.call(line, time_s)
            continue
        messages = _messages(line)
        is_agent = any(message.kind == TokenType.TOOL_OUTPUT for message in messages)
        gaps = (float(rng.lognormal(*(AGENT_GAP if is_agent else CHAT_GAP))) for _ in iter(int, 1))
        add.conversation(number, messages, is_agent, next(starts), gaps)
    return builder.build((f"Tokens by {add.tokens_by}; times that are not recorded are drawn (seed {seed}).",))


def word_pieces() -> Tokenize:
    """Returns a tokeniser that needs no model: pieces of words and punctuation, numbered as they come."""
    numbers: dict[str, int] = {}

    def tokenize(text: str) -> list[int]:
        return [numbers.setdefault(piece, len(numbers)) for piece in _PIECE.findall(text)]

    tokenize.__name__ = "pieces of words"
    return tokenize


class _Adder:
    """Adds the requests of conversations to a workload."""

    def __init__(self, builder: WorkloadBuilder, tokenize: Tokenize) -> None:
        self._builder, self._tokenize = builder, tokenize
        self.tokens_by = getattr(tokenize, "__name__", "the model's tokeniser")

    def conversation(self, name: int, messages: list[Message], is_agent: bool, start_s: float, gaps: Iterator[float]) -> None:
        """Adds one request for every answer, its prompt being all that came before without what was thought."""
        tokens, kinds = _Tokens(self._tokenize), [message.kind for message in messages]
        time_s, path = start_s, []
        for i, message in enumerate(messages):
            if message.kind != TokenType.RESPONSE:
                tokens.add(message)
                continue
            time_s += next(gaps) if path else 0.0
            waits = i + 1 < len(kinds) and kinds[i + 1] == TokenType.TOOL_OUTPUT
            num_prompt, num_tokens = len(tokens.ids) // BLOCK_TOKENS, len(tokens.ids)
            whole = _Tokens(self._tokenize, tokens)
            whole.add_answer(message.text)
            path = self._blocks(whole)
            self._builder.add(Arrival(time_s, name, num_tokens, is_agent, waits), path, num_prompt)
            tokens.add(Message(message.kind, _THINK.sub("", message.text)))

    def call(self, line: Line, time_s: float) -> None:
        """Adds one recorded call of an agent."""
        text, answer = line.value.get("input"), line.value.get("output")
        if not isinstance(text, str) or not isinstance(answer, str):
            raise line.broken("'input' and 'output' must be text")
        tokens = _Tokens(self._tokenize)
        for message in _labelled(text):
            tokens.add(message)
        num_prompt, num_tokens = len(tokens.ids) // BLOCK_TOKENS, len(tokens.ids)
        tokens.add_answer(answer)
        session = f"{line.value.get('session_id')}/{line.value.get('agent')}"
        self._builder.add(Arrival(time_s, session, num_tokens, is_agent=True), self._blocks(tokens), num_prompt)

    def _blocks(self, tokens: "_Tokens") -> list[int]:
        size = BLOCK_TOKENS
        num = len(tokens.ids) // size
        rows = np.array(tokens.ids[: num * size], np.int64).reshape(num, size)
        keys = [row.tobytes() for row in rows]
        return self._builder.blocks(keys, block_kinds(np.array(tokens.kinds, np.uint8), size), contents=keys)


class _Tokens:
    """Token ids and types side by side."""

    def __init__(self, tokenize: Tokenize, start: "_Tokens | None" = None) -> None:
        self._tokenize = tokenize
        self.ids: list[int] = [] if start is None else list(start.ids)
        self.kinds: list[int] = [] if start is None else list(start.kinds)

    def add(self, message: Message) -> None:
        ids = self._tokenize(message.text)
        self.ids += ids
        self.kinds += [int(message.kind)] * len(ids)

    def add_answer(self, text: str) -> None:
        """Adds an answer, what stands between <think> marks as thinking."""
        end = 0
        for thought in _THINK.finditer(text):
            self.add(Message(TokenType.RESPONSE, text[end : thought.start()]))
            self.add(Message(TokenType.COT, thought[0]))
            end = thought.end()
        self.add(Message(TokenType.RESPONSE, text[end:]))


def _messages(line: Line) -> list[Message]:
    field = next((name for name in ("messages", "conversations", "traj") if name in line.value), None)
    if field is None:
        raise line.broken("holds none of 'messages', 'conversations', 'traj', 'input'")
    found = []
    for item in line.items(field):
        role = item.get("role", item.get("from")) if isinstance(item, dict) else None
        if not isinstance(role, str) or role not in _ROLES:
            raise line.broken(f"the role {role!r} is unknown; known ones are: {', '.join(_ROLES)}")
        text = _text(line, item.get("content", item.get("value")))
        calls = item.get("tool_calls") or item.get("function_call")
        parts = [part for part in (text, json.dumps(calls) if calls else "") if part]
        found.append(Message(_ROLES[role], "\n".join(parts)))
    return found


def _text(line: Line, content: Any) -> str:
    """Returns a message's text: given as such, not at all beside a tool call, or in parts, of which pictures hold none."""
    if isinstance(content, str) or content is None:
        return content or ""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise line.broken(f"a message's content is {str(content)[:40]!r}; it must be a text, or a list of parts that hold it")
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))


def _labelled(text: str) -> list[Message]:
    """Returns the messages of a text in which each begins with its role and a colon."""
    pieces = _LABEL.split(text)
    start = [Message(TokenType.USER, pieces[0])] if pieces[0] else []
    return start + [Message(_ROLES[role], piece) for role, piece in zip(pieces[1::2], pieces[2::2], strict=True)]
