"""Which chunks an answer repeats. A rule about words; what the model attended to is another question."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from engine.chat.types import Citation
from engine.types import Chunk

LEAST_WORDS = 3
# Ideographs and kana are words of their own, as no space parts them.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


class _Word(NamedTuple):
    folded: str
    start: int
    stop: int


def citations(answer: str, chunks: Sequence[Chunk]) -> tuple[Citation, ...]:
    """Returns the chunks that share a run of words with the answer, letter case and punctuation aside, longest run first.

    A run counts from 3 words on, or where it is the whole answer; chunks whose run is less than half the longest are left out,
    as a turn of phrase stands in many. The quote is the chunk's own text. Chunks of equal runs keep their order.
    """
    said = _words(answer)
    found = [citation for chunk in chunks if (citation := _longest(said, chunk)) is not None]
    most = max((citation.num_words for citation in found), default=0)
    return tuple(sorted((c for c in found if 2 * c.num_words >= most), key=lambda citation: -citation.num_words))


def _longest(said: list[_Word], chunk: Chunk) -> Citation | None:
    written = _words(chunk.text)
    ours, theirs = [word.folded for word in said], [word.folded for word in written]
    run = SequenceMatcher(None, ours, theirs, autojunk=False).find_longest_match()
    if not run.size or run.size < min(LEAST_WORDS, len(said)):
        return None
    quote = chunk.text[written[run.b].start : written[run.b + run.size - 1].stop]
    return Citation(chunk.chunk_id, quote, run.size)


def _words(text: str) -> list[_Word]:
    return [_Word(match[0].casefold(), *match.span()) for match in _WORD.finditer(text)]
