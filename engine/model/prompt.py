"""The prompt of a request, tokenised once: every method gets the same ids, chunk borders are positions.

Text of users and documents never reaches the chat template and cannot become a special token.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import BadRequest
from engine.model.template import opening, rendered
from engine.types import Chunk

SYSTEM_TEXT = "You answer questions about the passages below. Reply with a short phrase taken from them."
LEAD_TEXT = "Answer the question in a few words, using only the passages above.\nQuestion:"
DOCUMENTS_MARK, QUESTION_MARK = "<<<documents>>>", "<<<question>>>"


@dataclass(frozen=True, eq=False, slots=True)
class Segment:
    """Token ids [n] and their pieces of text; joined, the pieces are the segment's text."""

    ids: np.ndarray
    pieces: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pieces)


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """What stands around the chunks and the question: the part before the first chunk, between the last and the question, behind it."""

    before: Segment
    lead: Segment
    tail: Segment


@dataclass(frozen=True, eq=False, slots=True)
class Prompt:
    """A request as one sequence: system part, chunks, question segment.

    Args:
        ids: int64 [T]. pieces: T pieces of text.
        chunk_spans: [start, stop) of every chunk; the first starts at system_len, the last ends at question_start.
        question_span: [start, stop) of the question's own words; the probe runs from question_start to its stop.
    """

    ids: np.ndarray
    pieces: tuple[str, ...]
    system_len: int
    chunk_spans: tuple[tuple[int, int], ...]
    question_start: int
    question_span: tuple[int, int]

    @property
    def num_tokens(self) -> int:
        """Returns T."""
        return len(self.ids)

    @property
    def num_doc_tokens(self) -> int:
        """Returns N."""
        return self.question_start - self.system_len

    def spans_of(self, chunk_index: int, text: str) -> list[tuple[int, int]]:
        """Returns the [start, stop) positions of the first occurrence of `text` in a chunk, [] where it has none."""
        start, stop = self.chunk_spans[chunk_index]
        pieces = self.pieces[start:stop]
        at = "".join(pieces).find(text)
        if at < 0 or not text:
            return []
        ends = np.cumsum([len(piece) for piece in pieces])
        first = int(np.searchsorted(ends, at, side="right"))
        last = int(np.searchsorted(ends, at + len(text), side="left"))
        return [(start + first, start + last + 1)]


def chunk_text(chunk: Chunk) -> str:
    """Returns the text of a chunk as it stands in the prompt."""
    title = chunk.title.strip()
    return f"{title}: {chunk.text.strip()}\n\n" if title else f"{chunk.text.strip()}\n\n"


class PromptBuilder:
    """Builds prompts for one tokenizer; the template is rendered once, around marks that are cut out again."""

    def __init__(self, tokenizer: object, max_context: int) -> None:
        self._tokenizer, self._max_context = tokenizer, max_context
        # Whether special tokens count as such is a state of the tokenizer, which uploads and requests use at the same time.
        self._lock = threading.Lock()
        head, rest = render_chat(tokenizer, f"{DOCUMENTS_MARK}{LEAD_TEXT}{QUESTION_MARK}").split(DOCUMENTS_MARK)
        self.frame = Frame(*(self.tokenize(text, special=True) for text in (head, *rest.split(QUESTION_MARK))))
        self.system = self.frame.before

    def tokenize(self, text: str, special: bool = False) -> Segment:
        """Returns the tokens of a text; special tokens in it stay ordinary text unless `special`."""
        if not text:
            return Segment(np.zeros(0, dtype=np.int64), ())
        with self._lock:
            encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, split_special_tokens=not special)
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        ends = np.maximum.accumulate([end for _, end in offsets]).tolist()
        if ends:
            ends[-1] = len(text)
        starts = [0, *ends[:-1]]
        return Segment(np.asarray(ids, dtype=np.int64), tuple(text[a:b] for a, b in zip(starts, ends, strict=True)))

    def chunk(self, chunk: Chunk) -> Segment:
        """Returns the tokens of a chunk. Raises BadRequest where it alone exceeds the model's context."""
        segment = self.tokenize(chunk_text(chunk))
        if len(segment) > self._max_context:
            raise BadRequest(
                f"The chunk {chunk.title or chunk.chunk_id!r} has {len(segment):,} tokens; the model reads at most "
                f"{self._max_context:,}, so split it."
            )
        return segment

    def build(self, chunks: Sequence[Segment], question: str, max_new_tokens: int, frame: Frame | None = None) -> Prompt:
        """Returns the prompt of chunks in their order. Raises BadRequest where it leaves no room for the answer.

        Args:
            frame: of a conversation, whose `before` ends with the question's turn begun; without it there is no earlier turn.
        """
        frame = frame or self.frame
        asked = self.tokenize((" " if len(frame.lead) else "") + question.strip())
        parts = [frame.before, *chunks, frame.lead, asked, frame.tail]
        ends = np.cumsum([len(part) for part in parts]).tolist()
        total, num_chunks = ends[-1], len(chunks)
        if total + max_new_tokens > self._max_context:
            raise BadRequest(
                f"The prompt has {total:,} tokens and the answer may take {max_new_tokens}; the model reads at most "
                f"{self._max_context:,}, so drop chunks or shorten the question."
            )
        return Prompt(
            ids=np.concatenate([part.ids for part in parts]),
            pieces=tuple(piece for part in parts for piece in part.pieces),
            system_len=ends[0],
            chunk_spans=tuple((ends[i], ends[i + 1]) for i in range(num_chunks)),
            question_start=ends[num_chunks],
            question_span=(ends[num_chunks + 1], ends[num_chunks + 2]),
        )


def render_chat(tokenizer: object, asked: str, system: str = SYSTEM_TEXT, turns: Sequence[tuple[str, str]] = ()) -> str:
    """Returns the text of a conversation up to the next answer, by the model's template or, without one, in plain words.

    The texts are put into the template as they stand, so they must be marks or constants, never a visitor's words.

    Args:
        asked: the last question; turns: (question, answer) before it.

    Raises BadRequest where the template cannot hold them.
    """
    if not getattr(tokenizer, "chat_template", None):
        earlier = "".join(f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in turns)
        return f"{opening(tokenizer)}{system}\n\n{earlier}{asked}\nAnswer:"
    texts = [*(text for turn in turns for text in turn), asked]
    spoken = [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)]
    merged = [{"role": "user", "content": f"{system}\n\n{texts[0]}"}, *spoken[1:]]
    for messages in ([{"role": "system", "content": system}, *spoken], merged):
        # Templates without a system role say so by raising; the text then stands before the first question.
        text = rendered(tokenizer, messages, add_generation_prompt=True, enable_thinking=False)
        if text is not None and all(text.count(part) == 1 for part in texts):
            return text
    raise BadRequest("The model's chat template drops the user's text; choose a model with an ordinary chat template.")
