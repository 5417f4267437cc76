"""A run as the player reads it: plain JSON, arrays as base64. Knows no page, no file and no picture.

The names are those of `Run`. What follows from something else in the run is left out (a ranking that is the order of its scores), what
is one bit per token is packed as bits, and spans go column by column: 10,000 tokens and 36 layers stay far below 1 MB.
"""

import base64
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, get_args

import numpy as np

from engine.types import Lane, MethodRun, Run, Span, Stage

FORMAT: Final = "fusescope-player/1"
LANES: Final[tuple[str, ...]] = get_args(Lane)
STAGES: Final[tuple[str, ...]] = get_args(Stage)


def pack_run(run: Run) -> dict[str, Any]:
    """Returns everything the player shows of a run, as JSON-able data."""
    return {
        "format": FORMAT,
        "lanes": LANES,
        "stages": STAGES,
        "provenance": asdict(run.provenance),
        "scenario": run.scenario,
        "question": run.question,
        "gold_answers": run.gold_answers,
        "ratio": run.ratio,
        "chunk_context": run.chunk_context,
        "max_new_tokens": run.max_new_tokens,
        "temperature": run.temperature,
        "seed": run.seed,
        "num_layers": run.num_layers,
        "num_tokens": len(run.tokens),
        "text": "".join(run.tokens),
        "token_lens": pack_lengths(run.tokens),
        "system_len": run.system_len,
        "question_start": run.question_start,
        "question_span": run.question_span,
        "answer_spans": run.answer_spans,
        "chunks": [asdict(chunk) for chunk in run.chunks],
        "methods": [_pack_method(method, run) for method in run.methods],
        "notices": run.notices,
    }


def pack_lengths(tokens: Sequence[str]) -> str:
    """Returns the lengths of the tokens in UTF-16 units, which is how JavaScript counts, seven bits a byte, low ones first."""
    packed = bytearray()
    for token in tokens:
        length = len(token.encode("utf-16-le")) // 2
        while length > 127:
            packed.append(length & 127 | 128)
            length >>= 7
        packed.append(length)
    return _b64(bytes(packed))


def _pack_method(method: MethodRun, run: Run) -> dict[str, Any]:
    implied = method.ranking is not None and follows_from_scores(method, run)
    return {
        "name": method.method,
        "params": method.params,
        "rows": _bits(method.rows, len(run.tokens)),
        "ranking": None if method.ranking is None or implied else _b64(np.asarray(method.ranking, "<u4").tobytes()),
        "ranking_is_scores": implied,
        "scores": None if method.scores is None else _b64(np.asarray(method.scores, "<f4").tobytes()),
        "critical_layers": method.critical_layers,
        "anchors": None if method.anchors is None or not method.anchors.size else _bits(_deepest(method.anchors), len(run.tokens)),
        "spans": _pack_spans(method.spans),
        "ttft_s": method.ttft_s,
        "ttft_repeats_s": method.ttft_repeats_s,
        "parts_s": asdict(method.parts_s),
        "loaded_bytes": method.loaded_bytes,
        "num_cache_hits": method.num_cache_hits,
        "answer": method.answer,
        "num_answer_tokens": len(method.answer_ids),
        "token_times_s": [round(float(t), 6) for t in method.token_times_s],
        "quality": asdict(method.quality),
        "kv_distance": None if method.kv_distance is None else _b64(np.asarray(method.kv_distance, "<f4").tobytes()),
        "chunk_context": method.chunk_context,
        "layer_rows": None if method.layer_rows is None else method.layer_rows.tolist(),
    }


def follows_from_scores(method: MethodRun, run: Run) -> bool:
    """Returns whether the ranking is the order of the scores, highest first, ties by position."""
    if method.ranking is None or method.scores is None or np.isnan(method.scores).any():
        return False
    order = np.argsort(-np.asarray(method.scores, np.float64), kind="stable") + run.system_len
    return bool(np.array_equal(order, method.ranking))


def _deepest(anchors: np.ndarray) -> np.ndarray:
    """Returns the anchors of the deepest layer the probe ran through, the one next to the critical layer."""
    return np.atleast_2d(anchors)[-1]


def _pack_spans(spans: Sequence[Span]) -> dict[str, Any]:
    return {
        "lane": [LANES.index(span.lane) for span in spans],
        "stage": [STAGES.index(span.stage) for span in spans],
        "layer": [span.layer for span in spans],
        "start_s": _b64(np.array([span.start_s for span in spans], "<f8").tobytes()),
        "end_s": _b64(np.array([span.end_s for span in spans], "<f8").tobytes()),
        "size_bytes": [span.size_bytes for span in spans],
    }


def _bits(positions: np.ndarray, num_tokens: int) -> str:
    mask = np.zeros(num_tokens, dtype=np.uint8)
    mask[positions] = 1
    return _b64(np.packbits(mask, bitorder="little").tobytes())


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
