"""The chunks as text, every token with its state, as a compact value for assets/player/token_text.js."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.types import Run
from viz import theme
from viz.figures import words
from viz.figures.bins import anchor_positions, rank_by_position, recomputed_mask, selective_masks

MAX_TOKEN_CHARS = 400
RECOMPUTED, ANCHOR, ANSWER = 1, 2, 4
SOURCES = {"disk": "found on disk", "memory": "found in memory", "computed": "computed for this run"}


@dataclass(frozen=True, eq=False, slots=True)
class ChunkText:
    """One chunk: its tokens as text, flags (bits above), the number recomputed, and a line about its cache."""

    number: int
    title: str
    start: int
    tokens: tuple[str, ...]
    flags: np.ndarray
    num_recomputed: int
    cache: str


@dataclass(frozen=True, eq=False, slots=True)
class TokenTextInfo:
    """All chunks in prompt order; ranks (from 1) and scores by document token, or None.

    choices: bool [N] by method, document tokens recomputed by each method that chooses.
    """

    method: str
    chunks: tuple[ChunkText, ...]
    ranks: np.ndarray | None
    scores: np.ndarray | None
    choices: dict[str, np.ndarray]
    num_doc_tokens: int
    system_len: int


def token_text_info(run: Run, method_name: str) -> TokenTextInfo | None:
    """Returns the text with states for one method, or None where the run has no such method."""
    method = run.method(method_name)
    if method is None:
        return None
    flags = np.zeros(len(run.tokens), dtype=np.uint8)
    flags[recomputed_mask(run, method)] |= RECOMPUTED
    flags[anchor_positions(method)] |= ANCHOR
    for start, stop in run.answer_spans:
        flags[start:stop] |= ANSWER
    ranks = rank_by_position(run, method)
    doc = slice(run.system_len, run.question_start)
    return TokenTextInfo(
        method=method_name,
        chunks=tuple(_chunk_text(run, number, flags) for number in range(1, len(run.chunks) + 1)),
        ranks=None if ranks is None else ranks[doc],
        scores=method.scores,
        choices=selective_masks(run),
        num_doc_tokens=run.num_doc_tokens,
        system_len=run.system_len,
    )


def _chunk_text(run: Run, number: int, flags: np.ndarray) -> ChunkText:
    chunk = run.chunks[number - 1]
    own = flags[chunk.start : chunk.stop]
    tokens = tuple(t if len(t) <= MAX_TOKEN_CHARS else t[:MAX_TOKEN_CHARS] + "…" for t in run.tokens[chunk.start : chunk.stop])
    read = f"cache {chunk.cache_hash[:8]}, {words.size(chunk.size_bytes)}, {SOURCES[chunk.source]}"
    # A server that fused nothing has read no cache.
    cache = read if chunk.cache_hash else "no cache read"
    return ChunkText(number, chunk.title, chunk.start, tokens, own, int((own & RECOMPUTED > 0).sum()), cache)


def token_text_data(info: TokenTextInfo | None, reason: str = "No run yet.") -> dict[str, Any]:
    """Returns plain JSON-able data; the panel packs it."""
    if info is None:
        return {"reason": reason, "chunks": []}
    return {
        "offset": info.system_len,
        "total": info.num_doc_tokens,
        "ranks": None if info.ranks is None else info.ranks.tolist(),
        "scores": None if info.scores is None else [float(f"{score:.3g}") for score in info.scores.tolist()],
        "choices": [[theme.method_label(name), "".join(np.where(mask, "1", "0"))] for name, mask in info.choices.items()],
        "chunks": [
            {
                "number": c.number,
                "title": c.title,
                "start": c.start,
                "tokens": c.tokens,
                "flags": "".join(map(str, c.flags.tolist())),
                "recomputed": c.num_recomputed,
                "cache": c.cache,
            }
            for c in info.chunks
        ],
    }
