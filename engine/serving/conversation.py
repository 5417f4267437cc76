"""From OpenAI's messages to the engine's conversation. Results of tools become chunks; they are never part of the history."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from engine.chat.types import ChatMessage
from engine.serving.problems import WrongField
from engine.serving.schema import Message
from engine.types import Chunk


@dataclass(frozen=True, slots=True)
class Conversation:
    """Question and answer by turns, the last being what is asked now, and the chunks that tools gave for it."""

    messages: tuple[ChatMessage, ...]
    chunks: tuple[Chunk, ...]

    @property
    def question(self) -> str:
        """Returns the text that is asked now."""
        return self.messages[-1].text.strip()

    def name(self, owner: str | None) -> str:
        """Returns an opaque name: the same for every turn of a conversation, as its beginning stays."""
        begin = next((message.text for message in self.messages if message.role == "user"), "")
        return blake2b(f"{owner or ''}\0{begin}".encode(), digest_size=8).hexdigest()


def conversation_of(messages: Sequence[Message]) -> Conversation:
    """Returns the conversation of a body's messages. Raises WrongField where the last is neither a question nor a tool's result.

    What an assistant says before it calls a tool is no answer. Messages of one speaker in a row are one: a question that was never
    answered, as clients keep it of a request that was stopped, and the next one.
    """
    spoken: list[ChatMessage] = []
    chunks: list[Chunk] = []
    for i, message in enumerate(messages):
        if message.role == "tool":
            chunks += _chunks(message.text, i)
            continue
        if message.role == "user":
            # What tools found for an earlier question is not read again.
            chunks = []
        if message.role == "assistant" and message.tool_calls:
            continue
        role = "system" if message.role == "developer" else message.role
        if role == "system" and spoken and spoken[-1].role == "system" and len(spoken) == 1:
            spoken[0] = ChatMessage("system", f"{spoken[0].text}\n{message.text}")
            continue
        if role != "system" and spoken and spoken[-1].role == role:
            both = (text for text in (spoken[-1].text, message.text) if text.strip())
            spoken[-1] = ChatMessage(role, "\n\n".join(both))
            continue
        spoken.append(ChatMessage(role, message.text))  # type: ignore[arg-type]
    if not spoken or spoken[-1].role != "user":
        raise WrongField("messages", "The last message is not a question; end with a message of the user, or with a tool's result for it.")
    return Conversation(tuple(spoken), _each_once(chunks))


def _chunks(content: str, index: int) -> list[Chunk]:
    """Returns the passages of a tool's result: of `search_documents` each with its id, of any other one text."""
    results = _results(content)
    if results is not None:
        return [Chunk(str(r.get("id", f"tool-{index}-{j}")), str(r.get("title", "")), r["text"], _score(r)) for j, r in enumerate(results)]
    return [Chunk(f"tool-{index}", "", content)] if content.strip() else []


def _results(content: str) -> list[dict[str, Any]] | None:
    """Returns the entries of our own search's result, None for any other text."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    results = found.get("data") if isinstance(found, dict) else None
    if not isinstance(results, list):
        return None
    fits = all(isinstance(r, dict) and isinstance(r.get("text"), str) and r["text"].strip() for r in results)
    return results if fits else None


def _score(result: dict[str, Any]) -> float | None:
    score = result.get("score")
    return float(score) if isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1 else None


def _each_once(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """Returns chunks without those whose id came before: two searches may find the same."""
    return tuple({chunk.chunk_id: chunk for chunk in reversed(chunks)}.values())[::-1]
