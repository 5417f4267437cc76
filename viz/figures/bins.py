"""Columns of the pictures over the prompt: one per token, or equal groups of tokens where there are too many."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.types import MethodRun, Run
from viz import theme
from viz.figures import words

# Two tokens a column up to 2,500 tokens, the size of the bundled scenarios.
MAX_BINS = 1280


@dataclass(frozen=True, eq=False, slots=True)
class Bins:
    """Columns over prompt positions; none crosses a border between system prompt, chunks and question.

    Args:
        edges: int64 [n + 1], first position of each column and the end of the last.
        step: tokens per column (the last column of a segment may hold fewer).
    """

    edges: np.ndarray
    step: int

    @property
    def counts(self) -> np.ndarray:
        """Returns int64 [n], tokens per column."""
        return np.diff(self.edges)

    @property
    def centres(self) -> np.ndarray:
        """Returns float64 [n], middles of the columns in prompt positions."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    def total(self, per_token: np.ndarray) -> np.ndarray:
        """Returns [n], sums of per-token values."""
        return np.add.reduceat(per_token, self.edges[:-1])

    def highest(self, per_token: np.ndarray) -> np.ndarray:
        """Returns [n], maxima of per-token values."""
        return np.maximum.reduceat(per_token, self.edges[:-1])


def prompt_bins(run: Run, max_bins: int = MAX_BINS) -> Bins:
    """Returns columns over the whole prompt, at most `max_bins` (or one per segment where there are more segments)."""
    return segment_bins([0, run.system_len, *_chunk_borders(run), run.question_start, len(run.tokens)], max_bins)


def document_bins(run: Run, max_bins: int = MAX_BINS) -> Bins:
    """Returns columns over the document tokens only, in prompt positions."""
    return segment_bins([run.system_len, *_chunk_borders(run), run.question_start], max_bins)


def segment_bins(borders: Sequence[int], max_bins: int) -> Bins:
    """Returns columns between the sorted unique `borders`."""
    cuts = sorted(set(borders))
    lengths = np.diff(cuts)
    step = max(1, -(-int(lengths.sum()) // max_bins))
    while int(np.ceil(lengths / step).sum()) > max(max_bins, len(lengths)):
        step += 1
    starts = [np.arange(start, stop, step) for start, stop in itertools.pairwise(cuts)]
    return Bins(edges=np.concatenate([*starts, cuts[-1:]]).astype(np.int64), step=step)


def recomputed_mask(run: Run, method: MethodRun) -> np.ndarray:
    """Returns bool [T], positions computed afresh in every layer."""
    mask = np.zeros(len(run.tokens), dtype=bool)
    mask[method.rows] = True
    return mask


def document_mask(run: Run, method: MethodRun) -> np.ndarray:
    """Returns bool [N], document tokens computed afresh."""
    return recomputed_mask(run, method)[run.system_len : run.question_start]


def selective_masks(run: Run) -> dict[str, np.ndarray]:
    """Returns bool [N] by method in reading order, for the methods that recompute some but not all document tokens."""
    masks = {method.method: document_mask(run, method) for method in run.methods}
    return {name: masks[name] for name in theme.method_order(masks) if 0 < masks[name].sum() < run.num_doc_tokens}


def anchor_positions(method: MethodRun) -> np.ndarray:
    """Returns int64 [m], the sorted anchors of the deepest layer the probe ran through, the one next to the critical layer."""
    if method.anchors is None or not method.anchors.size:
        return np.array([], dtype=np.int64)
    return np.unique(np.atleast_2d(method.anchors)[-1]).astype(np.int64)


def rank_by_position(run: Run, method: MethodRun) -> np.ndarray | None:
    """Returns int64 [T], rank of each document token counted from 1 (0 elsewhere), or None without a ranking."""
    if method.ranking is None:
        return None
    ranks = np.zeros(len(run.tokens), dtype=np.int64)
    ranks[method.ranking] = np.arange(1, len(method.ranking) + 1)
    return ranks


def where(run: Run, position: int) -> str:
    """Returns the name of the part of the prompt that holds a position, safe to draw."""
    if position < run.system_len:
        return "system prompt"
    for number, chunk in enumerate(run.chunks, start=1):
        if chunk.start <= position < chunk.stop:
            return f"chunk {number}: {words.plain(words.shorten(chunk.title, 48))}"
    return "question" if position >= run.question_start else "between chunks"


def quoted(run: Run, start: int, stop: int, limit: int = 60) -> str:
    """Returns the text of tokens [start, stop) in quotation marks, shortened and safe to draw."""
    text = "".join(token[: limit + 1] for token in run.tokens[start : min(stop, start + limit)])
    cut = text if len(text) <= limit else text[:limit] + "…"
    return f"“{words.plain(cut)}”"


def _chunk_borders(run: Run) -> list[int]:
    return [border for chunk in run.chunks for border in (chunk.start, chunk.stop)]
