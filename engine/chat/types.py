"""Frozen values of a conversation that cross a border: what is asked, what is told on the way, what a turn came to.

Knows numpy and nothing of models or torch. Positions are those of the turn's prompt and start at 0. Times are seconds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.errors import BadRequest
from engine.types import CHUNK_CONTEXTS, MAX_QUESTION_CHARS, Chunk, ChunkContext, MethodRun, Provenance, Run, check_characters

Role = Literal["system", "user", "assistant"]
Source = Literal["prefix hit", "prefix computed", "chunk loaded", "chunk recomputed", "question"]
MAX_ANSWER_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. An assistant's text is an earlier answer; documents are never part of a message."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The next turn of a conversation.

    Args:
        messages: oldest first: at most one of the system, which is added to the engine's own, then question and answer by turns;
            the last is the question that is asked now. Earlier turns come without their documents; an answer may be empty.
        chunks: retrieved for this question, in the order in which they are read; may be empty.
        method: how chunks are fused, any name of `Session.method_names()`. With "full" the chunks are computed exactly behind the
            cached prefix, as a server with a prefix cache alone does.
        ratio: share of the chunks' tokens that selective methods recompute, 0..1.
        conversation: opaque name of the conversation, for the cache policy, which learns from gaps between its turns.
        stops: texts that end the answer as soon as it holds one; it is still in the answer then.
        policy: eviction policy of the prefix cache; None keeps the one in use (SAECache at first). Another one starts empty.
        compare: the same ids go through "full" as well, behind the same cached prefix; the run then holds both.
    """

    messages: tuple[ChatMessage, ...]
    chunks: tuple[Chunk, ...] = ()
    method: str = "qcfuse"
    ratio: float = 0.3
    max_new_tokens: int = 128
    temperature: float = 0.0
    seed: int = 0
    chunk_context: ChunkContext = "system"
    conversation: str = ""
    stops: tuple[str, ...] = ()
    policy: str | None = None
    compare: bool = False

    def __post_init__(self) -> None:
        _check_messages(self.messages)
        if len({chunk.chunk_id for chunk in self.chunks}) != len(self.chunks):
            raise BadRequest("A chunk is listed twice; keep each chunk once.")
        if not (math.isfinite(self.ratio) and 0.0 <= self.ratio <= 1.0):
            raise BadRequest(f"The recompute ratio is {self.ratio}; it must be a number from 0 to 1.")
        if not (math.isfinite(self.temperature) and 0.0 <= self.temperature <= 2.0):
            raise BadRequest(f"The temperature is {self.temperature}; it must be a number from 0 (greedy) to 2.")
        if not 1 <= self.max_new_tokens <= MAX_ANSWER_TOKENS:
            raise BadRequest(f"The answer length is {self.max_new_tokens} tokens; it must be from 1 to {MAX_ANSWER_TOKENS}.")
        if self.chunk_context not in CHUNK_CONTEXTS:
            raise BadRequest(f"Unknown chunk context {self.chunk_context!r}; known ones are: {', '.join(CHUNK_CONTEXTS)}.")

    @property
    def question(self) -> str:
        """Returns the text that is asked now."""
        return self.messages[-1].text.strip()


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """What a waiting or running turn is doing; `queue_position` counts the requests ahead, 0 while it runs."""

    message: str
    fraction: float
    queue_position: int = 0


@dataclass(frozen=True, slots=True)
class ChatToken:
    """The next piece of the answer; joined, the pieces are `ChatTurn.answer`."""

    text: str


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Where the KV of prompt positions [start, stop) came from; the spans of a turn cover its prompt in order."""

    start: int
    stop: int
    source: Source


@dataclass(frozen=True, slots=True)
class Citation:
    """A chunk whose words the answer repeats: `quote`, num_words long, is the longest run of words that stands in both.

    A rule about words, not about what the model attended to.
    """

    chunk_id: str
    quote: str
    num_words: int


@dataclass(frozen=True, slots=True)
class ChatParts:
    """Time to first token of a turn; the parts add up to it.

    Args:
        prefix_load: matched blocks copied from the pool.
        prefix_compute: tokens of the prefix that were not cached.
        probe, load_wait, recompute, head: as in TtftParts, of the chunks and the question.
        select: choosing the tokens, and the rest: looking up and inserting blocks.
    """

    prefix_load: float
    prefix_compute: float
    probe: float
    select: float
    load_wait: float
    recompute: float
    head: float


@dataclass(frozen=True, eq=False, slots=True)
class ChatTurn:
    """One answered turn.

    Args:
        run: what the Fuse view and the player open, with the turn's method and, where it was compared, "full"; None where no
            chunk was given, as nothing was fused.
        finish: "stop" where the model or a stop text ended the answer, "length" where its length was reached.
        tokens: pieces of text of the prompt's T tokens; sources: where their KV came from.
        num_prefix_hits, num_prefix_computed: tokens before the chunks, read from the prefix cache or computed.
        num_fused_loaded, num_recomputed: tokens of chunks whose stored KV was used, or which were computed afresh.
        num_question: tokens behind the chunks, always computed.
        num_turns_dropped: oldest turns left out because the context is too short; a notice says so.
        citations: chunks whose words the answer repeats, most words first.
        notices: sentences about what the engine did on its own.
    """

    answer: str
    run: Run | None
    provenance: Provenance
    method: str
    finish: Literal["stop", "length"]
    tokens: tuple[str, ...]
    sources: tuple[SourceSpan, ...]
    num_answer_tokens: int
    num_prefix_hits: int
    num_prefix_computed: int
    num_fused_loaded: int
    num_recomputed: int
    num_question: int
    num_turns_dropped: int
    ttft_s: float
    parts_s: ChatParts
    citations: tuple[Citation, ...]
    notices: tuple[str, ...]

    @property
    def num_prompt_tokens(self) -> int:
        """Returns T."""
        return len(self.tokens)

    @property
    def full(self) -> MethodRun | None:
        """Returns what "full" did on the same ids, behind the same cached prefix, or None where it was not run."""
        return None if self.run is None else self.run.method("full")


@dataclass(frozen=True, slots=True)
class PrefixStats:
    """The prefix cache of conversations, as it is and what it did since it was made.

    Args:
        queues, kinds: blocks held, by queue and by token type.
        num_requests: turns that looked their prefix up; num_hit_tokens, num_computed_tokens: of their prefixes.
        evicted: blocks that left to make room, by the queue they stood in.
    """

    policy: str
    block_tokens: int
    capacity_blocks: int
    size_bytes: int
    queues: Mapping[str, int]
    kinds: Mapping[str, int]
    num_free: int
    num_requests: int
    num_hit_tokens: int
    num_computed_tokens: int
    evicted: Mapping[str, int]


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Returns where the stop text begins that is complete first, None where there is none; empty ones don't count."""
    found = [(at + len(stop), at) for stop in stops if stop and (at := text.find(stop)) >= 0]
    return min(found)[1] if found else None


def _check_messages(messages: tuple[ChatMessage, ...]) -> None:
    if not messages or messages[-1].role != "user":
        raise BadRequest("The conversation's last message is not a question; end it with a message of the user.")
    for i, message in enumerate(messages):
        check_characters(f"Message {i + 1}", message.text)
    turns = messages[1:] if messages[0].role == "system" else messages
    for i, message in enumerate(turns):
        expected = "assistant" if i % 2 else "user"
        if message.role != expected:
            raise BadRequest(
                f"Message {i + 1} is of the role {message.role!r}; questions (user) and answers (assistant) take turns, a system "
                "message may only stand first."
            )
        if message.role == "user" and not message.text.strip():
            raise BadRequest(f"Message {i + 1} has no text; write some or leave the turn out.")
    if len(turns[-1].text) > MAX_QUESTION_CHARS:
        raise BadRequest(f"The question has {len(turns[-1].text):,} characters; at most {MAX_QUESTION_CHARS:,} are allowed, so shorten it.")
