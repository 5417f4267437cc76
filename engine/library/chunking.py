"""Cuts a parsed text into chunks: whole sentences up to a budget of tokens, some repeated from the chunk before.

A chunk depends on the text alone, never on the file's name or on who uploaded it, so that the same text gives the same
chunks and their stored KV is used again.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby

from engine.library.limits import LibraryLimits
from engine.library.parse.base import ParsedText, Passage
from engine.library.sentences import split_sentences, summary_of
from engine.model.prompt import chunk_text
from engine.types import Chunk

CountTokens = Callable[[str], int]
# A paragraph's end is a good border once a chunk is this full; later texts then keep their borders when an earlier one changes.
FULL_ENOUGH = 2 / 3


@dataclass(frozen=True, slots=True)
class CutChunk:
    """One chunk before it is stored; fields as in `ChunkInfo`."""

    title: str
    text: str
    place: str
    summary: str
    text_hash: str
    num_tokens: int | None


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    num_tokens: int
    number: int
    ends_paragraph: bool


def hash_text(title: str, text: str) -> str:
    """Returns 32 hex digits over a chunk as the model reads it."""
    return blake2b(chunk_text(Chunk("", title, text)).encode(), digest_size=16).hexdigest()


def cut(parsed: ParsedText, count_tokens: CountTokens, limits: LibraryLimits) -> Iterator[CutChunk]:
    """Yields the chunks of a text in reading order.

    None is longer than the budget but by the tokens that joining its sentences makes; none spans two headings. A sentence
    above the budget is cut at a word, or inside one where it has no blanks.
    """
    overlap = 0 if parsed.is_table else limits.overlap_sentences
    for heading, group in groupby(parsed.passages, key=lambda passage: passage.heading):
        title = heading or parsed.title
        for part in _fill(list(_sentences(group, parsed.is_table, count_tokens, limits.chunk_tokens)), limits.chunk_tokens, overlap):
            text = _join(part)
            yield CutChunk(
                title=title,
                text=text,
                place=_place(parsed.unit, part[0].number, part[-1].number),
                summary=summary_of(text),
                text_hash=hash_text(title, text),
                num_tokens=count_tokens(chunk_text(Chunk("", title, text))),
            )


def _sentences(passages: Iterator[Passage], is_table: bool, count_tokens: CountTokens, budget: int) -> Iterator[_Sentence]:
    for passage in passages:
        whole = [passage.text] if is_table else split_sentences(passage.text)
        parts = [part for sentence in whole for part in _within(sentence, count_tokens, budget)]
        for i, (text, num_tokens) in enumerate(parts):
            yield _Sentence(text, num_tokens, passage.number, i == len(parts) - 1)


def _within(text: str, count_tokens: CountTokens, budget: int) -> list[tuple[str, int]]:
    """Returns a sentence with its tokens, halved until every part is within the budget."""
    parts, stack = [], [text]
    while stack:
        part = stack.pop()
        num_tokens = count_tokens(f" {part}")
        if num_tokens <= budget or len(part) < 2:
            parts.append((part, num_tokens))
            continue
        at = _middle(part)
        stack += [half for half in (part[at:].strip(), part[:at].strip()) if half]
    return parts


def _middle(text: str) -> int:
    """Returns where to halve a text: at the blank nearest to the middle of its inner half, else between two characters."""
    middle = len(text) // 2
    before, after = text.rfind(" ", len(text) // 4, middle), text.find(" ", middle, len(text) * 3 // 4)
    blanks = [at for at in (before, after) if at > 0]
    if blanks:
        return min(blanks, key=lambda at: abs(at - middle))
    while middle < len(text) - 1 and unicodedata.combining(text[middle]):
        middle += 1
    return middle


def _fill(sentences: Sequence[_Sentence], budget: int, overlap: int) -> Iterator[list[_Sentence]]:
    """Yields runs of sentences within the budget; each but the first begins with the last `overlap` of the one before."""
    part: list[_Sentence] = []
    num_tokens = num_repeated = 0
    for sentence in sentences:
        if len(part) > num_repeated and num_tokens + sentence.num_tokens > budget:
            yield part
            part = _repeated(part, overlap, budget - sentence.num_tokens)
            num_repeated, num_tokens = len(part), sum(s.num_tokens for s in part)
        part.append(sentence)
        num_tokens += sentence.num_tokens
        if sentence.ends_paragraph and num_tokens >= FULL_ENOUGH * budget:
            yield part
            part, num_tokens, num_repeated = [], 0, 0
    if len(part) > num_repeated:
        yield part


def _repeated(part: Sequence[_Sentence], overlap: int, room: int) -> list[_Sentence]:
    """Returns the last sentences that fit beside the next one, at most `overlap`, none that would fill half a chunk."""
    kept: list[_Sentence] = []
    for sentence in reversed(part[-overlap:] if overlap else []):
        room -= sentence.num_tokens
        if room < 0 or sentence.num_tokens * 2 > room + sentence.num_tokens:
            break
        kept.insert(0, sentence)
    return kept


def _join(part: Sequence[_Sentence]) -> str:
    return "".join(s.text + ("\n" if s.ends_paragraph else " ") for s in part).strip()


def _place(unit: str, first: int, last: int) -> str:
    if not unit:
        return ""
    return f"{unit} {first}" if first == last else f"{unit}s {first}-{last}"
