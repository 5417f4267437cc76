"""A question with its passages, as files and the hub have them, turned into a sample with chunks of a realistic size."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from engine.bench.data.sample import Sample
from engine.errors import BadRequest
from engine.types import Chunk


def count_words(text: str) -> int:
    """Returns the number of words, separated by white space."""
    return len(text.split())


@dataclass(frozen=True, slots=True)
class Packing:
    """How short passages are joined to chunks: neighbours, to at least `least` where that does not exceed `most`.

    A longer passage stays whole. `size` gives the length of a text in the unit of both.
    """

    least: int = 120
    most: int = 300
    size: Callable[[str], int] = count_words

    @classmethod
    def of_tokens(cls, most: int, size: Callable[[str], int]) -> "Packing":
        """Returns the packing to as many tokens as fit `most`. Raises BadRequest.

        Args:
            size: length of a text in the model's tokens.
        """
        if most < 16:
            raise BadRequest(f"--pack-tokens is {most}; a chunk needs at least 16 tokens, and the papers use 512.")
        return cls(most, most, size)

    def groups(self, passages: Sequence["Passage"]) -> Iterator[list["Passage"]]:
        """Yields the neighbouring passages of every chunk, in order."""
        group: list[Passage] = []
        total = 0
        for passage in passages:
            size = self.size(passage.text)
            if group and (total >= self.least or total + size > self.most):
                yield group
                group, total = [], 0
            group.append(passage)
            total += size
        if group:
            yield group


class Passage(msgspec.Struct, frozen=True):
    """One retrieved passage; `is_supporting` where the set marks it as holding a part of the answer."""

    text: str
    title: str = ""
    is_supporting: bool = False


class QuestionRow(msgspec.Struct, frozen=True):
    """One line of a JSONL file; further fields are ignored."""

    id: str | int
    question: str
    answers: tuple[str, ...]
    passages: tuple[Passage, ...]


def sample_of(row: QuestionRow, packing: Packing) -> Sample:
    """Returns the sample of a row; its supporting spans are the answers as they stand in passages marked supporting.

    Raises BadRequest with what is missing.
    """
    if not row.question.strip():
        raise BadRequest("the question is empty")
    if not row.passages:
        raise BadRequest("there are no passages")
    if any(not answer.strip() for answer in row.answers):
        raise BadRequest("an answer is empty")
    chunks, supporting = [], []
    for i, group in enumerate(packing.groups(row.passages)):
        chunk_id = f"p{i + 1:02d}"
        chunks.append(Chunk(chunk_id, group[0].title, "\n\n".join(passage.text for passage in group)))
        marked = " ".join(passage.text for passage in group if passage.is_supporting)
        supporting += [(chunk_id, answer) for answer in dict.fromkeys(row.answers) if answer in marked]
    return Sample(str(row.id), row.question, row.answers, tuple(chunks), tuple(supporting))
