"""What a turn's tokens and its time to first token were spent on. Pure functions of what was measured."""

import itertools
from typing import NamedTuple

import numpy as np

from engine.chat.prefixes import PrefixUse
from engine.chat.types import ChatParts, Source, SourceSpan
from engine.model.prompt import Prompt
from engine.types import TtftParts

SOURCES: tuple[Source, ...] = ("prefix hit", "prefix computed", "chunk loaded", "chunk recomputed", "question")


class Account(NamedTuple):
    """Spans that cover the prompt in order, and how many tokens each source has, in the order of SOURCES."""

    spans: tuple[SourceSpan, ...]
    counts: tuple[int, ...]


def account(prompt: Prompt, rows: np.ndarray, use: PrefixUse) -> Account:
    """Returns where the KV of every prompt token came from.

    Args:
        rows: int [n], positions that the method computed afresh, the question's among them.
    """
    source = np.empty(prompt.num_tokens, np.int64)
    source[: use.num_hits] = 0
    source[use.num_hits : prompt.system_len] = 1
    source[prompt.system_len : prompt.question_start] = 2
    source[rows[(rows >= prompt.system_len) & (rows < prompt.question_start)]] = 3
    source[prompt.question_start :] = 4
    borders = [0, *(np.flatnonzero(np.diff(source)) + 1).tolist(), prompt.num_tokens]
    spans = tuple(SourceSpan(a, b, SOURCES[source[a]]) for a, b in itertools.pairwise(borders))
    return Account(spans, tuple(np.bincount(source, minlength=len(SOURCES)).tolist()))


def chat_parts(parts: TtftParts, use: PrefixUse) -> ChatParts:
    """Returns a method's parts with the prefix's, which they contain, named apart."""
    return ChatParts(
        prefix_load=use.load_s,
        prefix_compute=use.compute_s,
        probe=parts.probe,
        select=parts.select,
        load_wait=parts.load_wait - use.load_s,
        recompute=parts.recompute - use.compute_s,
        head=parts.head,
    )
