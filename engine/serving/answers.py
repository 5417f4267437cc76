"""Answers in OpenAI's form: whole, in chunks of a stream, with usage; `fusescope` holds what that form has no place for."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from engine.chat.types import ChatTurn
from engine.types import Chunk


@dataclass(frozen=True, slots=True)
class Heading:
    """What all parts of one answer share: its id, when it began (Unix time, s), the model's id.

    Args:
        tells_usage: whether a stream ends with its usage; all other parts of it then say that they have none.
    """

    answer_id: str
    created: int
    model: str
    tells_usage: bool = False

    @classmethod
    def new(cls, model: str, tells_usage: bool = False) -> "Heading":
        """Returns the heading of an answer that begins now."""
        return cls(f"chatcmpl-{uuid4().hex}", int(time.time()), model, tells_usage)

    def _part(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": self.answer_id, "object": kind, "created": self.created, "model": self.model, **fields}

    def completion(self, message: dict[str, Any], finish: str, usage: dict[str, Any], extras: dict[str, Any]) -> dict[str, Any]:
        """Returns a whole answer."""
        choice = {"index": 0, "message": {"role": "assistant", "refusal": None, **message}, "logprobs": None, "finish_reason": finish}
        return self._part("chat.completion", choices=[choice], usage=usage, fusescope=extras)

    def delta(self, delta: dict[str, Any], finish: str | None = None, extras: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns a part of a stream; extras come with the last one."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        more: dict[str, Any] = {} if extras is None else {"fusescope": extras}
        if self.tells_usage:
            more["usage"] = None
        return self._part("chat.completion.chunk", choices=[choice], **more)

    def usage(self, usage: dict[str, Any]) -> dict[str, Any]:
        """Returns the part of a stream that holds the usage alone."""
        return self._part("chat.completion.chunk", choices=[], usage=usage)


def usage_of(turn: ChatTurn) -> dict[str, Any]:
    """Returns tokens used. `cached_tokens`: their KV was read, from the prefix cache or a stored chunk; `recomputed_tokens`: of
    chunks, computed afresh."""
    return _usage(turn.num_prompt_tokens, turn.num_answer_tokens, turn.num_prefix_hits + turn.num_fused_loaded, turn.num_recomputed)


def no_usage() -> dict[str, Any]:
    """Returns the usage of an answer for which the model was not run."""
    return _usage(0, 0, 0, 0)


def _usage(prompt: int, answer: int, cached: int, recomputed: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": {"cached_tokens": cached, "recomputed_tokens": recomputed},
    }


def extras_of(turn: ChatTurn, chunks: Sequence[Chunk], wait_s: float, notices: Sequence[str] = ()) -> dict[str, Any]:
    """Returns what is ours about an answer, of JSON's types.

    Args:
        wait_s: from the request's arrival until its turn came.
    """
    return {
        "method": turn.method,
        "ttft_s": turn.ttft_s,
        "parts_s": asdict(turn.parts_s),
        "queue_wait_s": wait_s,
        "num_prefix_hits": turn.num_prefix_hits,
        "num_prefix_computed": turn.num_prefix_computed,
        "num_fused_loaded": turn.num_fused_loaded,
        "num_recomputed": turn.num_recomputed,
        "num_question": turn.num_question,
        "num_turns_dropped": turn.num_turns_dropped,
        "sources": [asdict(span) for span in turn.sources],
        "citations": [asdict(citation) for citation in turn.citations],
        "documents": [{"id": chunk.chunk_id, "title": chunk.title, "relevance": chunk.relevance} for chunk in chunks],
        "provenance": asdict(turn.provenance),
        "notices": [*notices, *turn.notices],
    }


def event(data: dict[str, Any]) -> bytes:
    """Returns one server-sent event. JSON escapes line ends, so no text can begin another event.

    Many clients take Unicode's other line ends for such, too; within JSON they can only stand in a text, where they may be escaped.
    """
    text = json.dumps(data, ensure_ascii=False).translate(_LINE_ENDS)
    return b"data: " + text.encode() + b"\n\n"


def comment(text: str) -> bytes:
    """Returns a line that clients pass over; it shows whether the client is still there."""
    assert "\n" not in text and "\r" not in text, "a comment is one line"
    return f": {text}\n\n".encode()


_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
LAST_EVENT = b"data: [DONE]\n\n"
