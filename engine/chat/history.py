"""What stands before a turn's chunks: the system part and the earlier turns, as typed tokens.

The template is rendered around marks that are cut out again, and every text is tokenised by itself, so no visitor's words reach the
template and a longer conversation begins with the very ids of a shorter one. Knows nothing of caches.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.chat.types import ChatRequest
from engine.errors import BadRequest
from engine.model.prompt import DOCUMENTS_MARK, SYSTEM_TEXT, Frame, PromptBuilder, Segment, render_chat
from engine.prefix.blocks import TokenType
from engine.prefix.roles import TypedTokens, without_thinking

INSTRUCTIONS_MARK, QUESTION_MARK, ANSWER_MARK = "<<<instructions>>>", "<<<question {}>>>", "<<<answer {}>>>"
# Oldest turns leave so many at a time: what is left then begins alike for as many turns, and is found in the cache.
DROPPED_AT_ONCE = 4


class Turn(NamedTuple):
    """One earlier turn, without its documents."""

    question: str
    answer: str


class Past(NamedTuple):
    """All that stands before a turn's chunks: ids and pieces of text, and each token's type."""

    segment: Segment
    kinds: np.ndarray

    def typed(self) -> TypedTokens:
        """Returns it as the prefix cache takes it."""
        return TypedTokens(self.segment.ids, self.kinds)


class Fitted(NamedTuple):
    """A turn that fits the model's context: its past, what stands around the chunks, and the oldest turns that were left out."""

    past: Past
    turns: tuple[Turn, ...]
    frame: Frame
    num_dropped: int


class HistoryFormat:
    """Writes the past of a conversation for one model.

    Args:
        tokenizer: with the chat template, or without.
        max_context: tokens that the model reads at most.
    """

    def __init__(self, tokenizer: object, prompts: PromptBuilder, max_context: int) -> None:
        self._tokenizer, self._prompts, self._max_context = tokenizer, prompts, max_context
        self._nothing = prompts.tokenize("")

    def past(self, instructions: str, turns: Sequence[Turn]) -> Past:
        """Returns the past up to where the next question's turn begins. Raises BadRequest where the template cannot hold it.

        Args:
            instructions: of a system message, behind the engine's own; may be empty.
        """
        marks = [(QUESTION_MARK.format(i), ANSWER_MARK.format(i)) for i in range(len(turns))]
        system = f"{SYSTEM_TEXT}\n\n{INSTRUCTIONS_MARK}" if instructions else SYSTEM_TEXT
        rest, _ = render_chat(self._tokenizer, DOCUMENTS_MARK, system, marks).split(DOCUMENTS_MARK)
        texts = [(INSTRUCTIONS_MARK, instructions, TokenType.SYSTEM)] if instructions else []
        for mark, turn in zip(marks, turns, strict=True):
            texts += [(mark[0], turn.question, TokenType.USER), (mark[1], turn.answer, TokenType.RESPONSE)]
        segments, kinds = list[Segment](), list[np.ndarray]()

        def add(text: str, kind: TokenType, is_template: bool) -> None:
            segments.append(self._prompts.tokenize(text, special=is_template))
            kinds.append(np.full(len(segments[-1]), kind, np.uint8))

        for i, (mark, text, kind) in enumerate(texts):
            before, found, rest = rest.partition(mark)
            if not found:
                raise BadRequest("The model's chat template cannot hold earlier turns in their order; choose a model with an ordinary one.")
            add(before, kind if i else TokenType.SYSTEM, True)
            add(text, kind, False)
        add(rest, TokenType.USER if turns else TokenType.SYSTEM, True)
        ids, pieces = np.concatenate([s.ids for s in segments]), tuple(piece for s in segments for piece in s.pieces)
        return Past(Segment(ids, pieces), np.concatenate(kinds))

    def fit(self, request: ChatRequest, chunks: Sequence[Segment]) -> Fitted:
        """Returns a request's past with as many of its turns as the context has room for, the latest ones.

        Raises BadRequest where the question and its chunks alone are too long.
        """
        instructions, turns = spoken(request)
        bare = self._fitted(self.past(instructions, ()), (), chunks, len(turns))
        alone = self._prompts.build(chunks, request.question, request.max_new_tokens, bare.frame).num_tokens - len(bare.past.segment)
        room = self._max_context - alone - request.max_new_tokens
        for num_dropped in range(0, len(turns), DROPPED_AT_ONCE if len(turns) > DROPPED_AT_ONCE else 1):
            kept = turns[num_dropped:]
            past = self.past(instructions, kept)
            if len(past.segment) <= room:
                return self._fitted(past, kept, chunks, num_dropped)
        return bare

    def _fitted(self, past: Past, turns: tuple[Turn, ...], chunks: Sequence[Segment], num_dropped: int) -> Fitted:
        frame = self._prompts.frame
        # Without passages nothing is said about them.
        return Fitted(past, turns, Frame(past.segment, frame.lead if chunks else self._nothing, frame.tail), num_dropped)


def spoken(request: ChatRequest) -> tuple[str, tuple[Turn, ...]]:
    """Returns a request's instructions and its earlier turns, thoughts left out, without white space at their ends."""
    messages = request.messages
    instructions = messages[0].text.strip() if messages[0].role == "system" else ""
    told = [message.text.strip() for message in (messages[1:] if messages[0].role == "system" else messages)]
    return instructions, tuple(Turn(told[i], without_thinking(told[i + 1]).strip()) for i in range(0, len(told) - 1, 2))
