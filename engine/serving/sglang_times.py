"""Splits a time to first token that a client measured by what the server says it did inside.

SGLang tells of its queue and its prefill where it was started with `--enable-metrics`, the plugin of what became of a fused request.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from engine.types import Span, TtftParts

Told = Mapping[str, Any]


class Inside(NamedTuple):
    """Seconds inside the server: selection, waiting for chunks, the layers; zeros where it told nothing."""

    select: float
    load: float
    layers: float

    @property
    def total(self) -> float:
        """Returns their sum."""
        return self.select + self.load + self.layers


def server_ttft(metas: Sequence[Told]) -> float | None:
    """Returns the median time to first token by the server's own clock, from a request's arrival on; None where it was not told."""
    told = [float(meta["first_token_latency"]) for meta in metas if meta.get("first_token_latency") is not None]
    return statistics.median(told) if told else None


def inside(told: Told, meta: Told) -> Inside:
    """Returns what the server did.

    Args:
        told: what the plugin says of the request; empty for one that was not to be fused.
        meta: the server's metadata of the answer.
    """
    if told.get("fused"):
        select, load = float(told["select_s"]), float(told["chunks_s"])
        return Inside(select, load, max(0.0, float(told["forward_s"]) - select - load))
    begun, ended = meta.get("forward_entry_time"), meta.get("prefill_finished_time")
    return Inside(0.0, 0.0, max(0.0, float(ended) - float(begun)) if begun and ended else 0.0)


def parts(done: Inside, ttft_s: float) -> TtftParts:
    """Returns the split; in `head` is all else: queue, sampling, text and the way here. Where nothing was told, all is the layers'."""
    if not done.layers:
        return TtftParts(probe=0.0, select=0.0, load_wait=0.0, recompute=ttft_s, head=0.0)
    rest = max(0.0, ttft_s - done.total)
    return TtftParts(probe=0.0, select=done.select, load_wait=done.load, recompute=ttft_s - rest - done.select - done.load, head=rest)


def spans(done: Inside, ttft_s: float, loaded_bytes: int) -> tuple[Span, ...]:
    """Returns the stages one after the other, ending with the first token; () where the server told nothing."""
    if not done.layers:
        return ()
    start = max(0.0, ttft_s - done.total)
    found = []
    for stage, length, size in (("load_wait", done.load, loaded_bytes), ("select", done.select, 0), ("recompute", done.layers, 0)):
        if length:
            found.append(Span("device", stage, -1, start, start + length, size))  # type: ignore[arg-type]
        start += length
    return tuple(found)
