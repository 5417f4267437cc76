"""A prompt as it grows turn by turn: spans of token types, cut into blocks, a shared template in front."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from engine.prefix.blocks import NO_PARENT, TokenType
from engine.prefix.workloads.builder import WorkloadBuilder

NUM_TYPES = len(TokenType)


class Span(NamedTuple):
    """So many tokens of one type."""

    kind: int
    num_tokens: int


def block_kinds(token_kinds: np.ndarray, block_size: int) -> list[int]:
    """Returns the type of each full block of tokens uint8 [n]: the majority's, ties to the type that comes first in the block."""
    num = len(token_kinds) // block_size
    rows = token_kinds[: num * block_size].reshape(num, block_size)
    kinds = rows[:, 0].copy()
    # Few blocks hold more than one type.
    mixed = np.flatnonzero((rows != rows[:, :1]).any(1))
    if len(mixed):
        rows = rows[mixed]
        counts = (rows[:, :, None] == np.arange(NUM_TYPES)).sum(1)
        of_token = np.take_along_axis(counts, rows.astype(np.int64), 1)
        kinds[mixed] = rows[np.arange(len(mixed)), of_token.argmax(1)]
    return kinds.tolist()


class Stream:
    """One session's prompt in a workload being built; every block's content is its place in the session or the template.

    Args:
        template: name of the shared text in front, of `template_tokens`.
    """

    def __init__(self, builder: WorkloadBuilder, session: Hashable, template: Hashable, template_tokens: int) -> None:
        self._builder, self._session = builder, session
        self._template, self._template_tokens = template, template_tokens
        self._kinds = np.zeros(template_tokens, np.uint8)
        self._path: list[int] = []
        self._branch = 0

    @property
    def num_tokens(self) -> int:
        """Returns the prompt's length."""
        return len(self._kinds)

    def append(self, spans: Sequence[Span]) -> list[int]:
        """Adds spans for good; returns the path of all full blocks."""
        kinds = self._extended(spans)
        self._path, self._kinds = self._blocks(kinds, self._session), kinds
        return self._path

    def peek(self, spans: Sequence[Span]) -> list[int]:
        """Returns the path with spans added that no later prompt repeats, as a thinking branch."""
        self._branch += 1
        return self._blocks(self._extended(spans), (self._session, self._branch))

    def _extended(self, spans: Sequence[Span]) -> np.ndarray:
        return np.concatenate([self._kinds, *(np.full(span.num_tokens, span.kind, np.uint8) for span in spans)])

    def _blocks(self, kinds: np.ndarray, owner: Hashable) -> list[int]:
        size, done = self._builder.block_size, len(self._path)
        num = len(kinds) // size
        in_template = self._template_tokens // size
        keys = [("template", self._template, i) if i < in_template else (owner, i) for i in range(done, num)]
        behind = self._path[-1] if self._path else NO_PARENT
        return self._path + self._builder.blocks(keys, block_kinds(kinds[done * size :], size), behind)
