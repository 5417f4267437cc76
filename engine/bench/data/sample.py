"""One question over chunks, as every source of samples gives it."""

from dataclasses import dataclass

from engine.types import Chunk

_YES_NO = frozenset({"yes", "no"})


@dataclass(frozen=True, slots=True)
class Sample:
    """A question over chunks with gold answers; supporting: (chunk_id, exact span) pairs that hold an answer."""

    sample_id: str
    question: str
    answers: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    supporting: tuple[tuple[str, str], ...]
    scenario: str | None = None

    @property
    def is_yes_no(self) -> bool:
        """Returns whether the gold answer is yes or no, which no passage states."""
        return any(answer.strip(" .").casefold() in _YES_NO for answer in self.answers)

    @property
    def holds_gold(self) -> bool:
        """Returns whether a gold answer, or else every supporting span, stands in the chunks, letter case aside."""
        texts = {chunk.chunk_id: chunk.text.casefold() for chunk in self.chunks}
        if any(answer.casefold() in text for answer in self.answers for text in texts.values()):
            return True
        return bool(self.supporting) and all(span.casefold() in texts.get(chunk_id, "") for chunk_id, span in self.supporting)
