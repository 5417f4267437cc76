"""Chunks of neutral prose with given sentences hidden in them, in their order, as evenly spread as they fit."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from engine.bench.data.passages import count_words
from engine.bench.data.prose import SUBJECTS, sentences
from engine.types import Chunk

# Measured on this prose and its needles with the tokenizer of the bundled model; others differ by some per cent.
TOKENS_PER_WORD = 1.2
CHUNK_WORDS, MIN_FILL, MAX_FILL = 185, 140, 230


class Haystack(NamedTuple):
    """Chunks, and for every needle in its order the id of the chunk that holds it."""

    chunks: tuple[Chunk, ...]
    places: tuple[str, ...]


def haystack(rng: random.Random, num_tokens: int, needles: Sequence[str]) -> Haystack:
    """Returns about `num_tokens` tokens of prose in chunks of 120 to 300 words that hold the needles.

    Needles stand in different chunks while there are enough of these.
    """
    num_words = round(num_tokens / TOKENS_PER_WORD)
    num_chunks = max(1, round(num_words / CHUNK_WORDS))
    slots = _slots(rng, num_chunks, len(needles))
    subjects = [subject for _ in range(num_chunks // len(SUBJECTS) + 1) for subject in rng.sample(SUBJECTS, len(SUBJECTS))]
    chunks = []
    left = num_words
    for i in range(num_chunks):
        own = [needle for needle, slot in zip(needles, slots, strict=True) if slot == i]
        share = left / (num_chunks - i) * (rng.uniform(0.9, 1.1) if i < num_chunks - 1 else 1.0)
        room = min(max(share, MIN_FILL), MAX_FILL) - sum(map(count_words, own))
        text = _hide(rng, _prose(rng, subjects[i], room), own)
        left -= count_words(text)
        chunks.append(Chunk(f"h{i + 1:02d}", subjects[i], text))
    return Haystack(tuple(chunks), tuple(chunks[slot].chunk_id for slot in slots))


def _slots(rng: random.Random, num_chunks: int, num_needles: int) -> list[int]:
    """Returns the chunk of every needle, ascending."""
    rounds = [rng.sample(range(num_chunks), num_chunks) for _ in range(-(-num_needles // num_chunks))]
    return sorted([slot for order in rounds for slot in order][:num_needles])


def _prose(rng: random.Random, subject: str, num_words: float) -> list[str]:
    """Returns sentences of at least `num_words` words together, at most half a sentence more."""
    found, total = [], 0
    for sentence in sentences(rng, subject):
        size = count_words(sentence)
        if total + size / 2 > num_words and found:
            break
        found.append(sentence)
        total += size
    return found


def _hide(rng: random.Random, prose: list[str], needles: Sequence[str]) -> str:
    places = sorted(rng.sample(range(len(prose) + 1), min(len(needles), len(prose) + 1)))
    parts, first = [], 0
    for needle, place in zip(needles, places, strict=True):
        parts += [*prose[first:place], needle]
        first = place
    return " ".join([*parts, *prose[first:]])
