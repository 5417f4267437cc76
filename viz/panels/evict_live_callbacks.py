"""What happens at the live run of the Evict tab: parse, one call of the session, values to show."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gradio as gr

from engine.cache_types import CacheRun, LiveAsk, LivePoint
from engine.errors import Cancelled, EngineError
from engine.types import Status
from viz.panels.contract import LiveRunsLike
from viz.panels.evict_board import board_of
from viz.panels.evict_callbacks import Running
from viz.panels.evict_live_view import live_view, parse_live
from viz.panels.fuse_view import progress, status
from viz.panels.live import failed
from viz.panels.players import pack

# Pictures are drawn anew at most this often, and more rarely where making them is slow: each costs the processor that is being measured,
# and a page that is always drawing leaves no moment in which to press Stop.
DRAW_GAP_S, DRAW_GAP_PER_S, TELL_GAP_S = 1.5, 20.0, 0.25
NUM_SHOWN = 4
Outputs = list[Any]


@dataclass(frozen=True, slots=True)
class LiveCallbacks:
    """Callbacks of one page; holds nothing of a visitor."""

    runs: LiveRunsLike

    def begin(self, running: Running | None, *form: Any) -> Outputs:
        """Returns status, what to run and what stops it; what still runs is stopped. Nothing is to run where the form does not hold."""
        try:
            ask = parse_live(self.runs.policy_names(), *form)
        except EngineError as error:
            return [failed(error), None, gr.skip()]
        if running is not None:
            running.set()
        return [pack(status("busy", "Waiting for the engine; it does one thing at a time.")), ask, Running()]

    def stopped(self, running: Running | None) -> Any:
        """Returns the status after Stop; what was served by then stays on the page."""
        if running is None:
            return pack(status("idle", "Nothing runs live."))
        running.set()
        return pack(status("idle", "Stopped. The requests served before are still shown."))

    def run(self, ask: LiveAsk | None, running: Running | None) -> Iterator[Outputs]:
        """Yields status, LiveView and the board; the board stays what it was until all is served."""
        if ask is None or running is None or not running.claim():
            yield [gr.skip()] * (2 + NUM_SHOWN)
            return
        begun, points, runs = time.monotonic(), [], []
        try:
            with closing(self.runs.stream(ask, running.is_set)) as items:
                yield from _drawn(items, points, runs, ask)
        except Cancelled:
            yield [gr.skip(), *_shown(points, ask), gr.skip()]
        except EngineError as error:
            yield [failed(error), *_shown(points, ask), gr.skip()]
        else:
            done = f"{ask.num_requests} requests under {len(ask.policies)} policies in {time.monotonic() - begun:.0f} s."
            done += " “Who wins” and “Why” show this run now."
            yield [pack(status("done", done)), *_shown(points, ask), board_of(tuple(runs), "replayed")]


def _drawn(
    items: Iterator[Status | LivePoint | CacheRun], points: list[LivePoint], runs: list[CacheRun], ask: LiveAsk
) -> Iterator[Outputs]:
    """Yields outputs at a readable pace; points and runs are collected."""
    told = drawn = gap_s = 0.0
    for item in items:
        now = time.monotonic()
        if isinstance(item, CacheRun):
            runs.append(item)
        elif isinstance(item, LivePoint):
            points.append(item)
        elif now - told >= TELL_GAP_S:
            told = now
            pictures = [gr.skip()] * NUM_SHOWN
            if points and now - drawn >= gap_s:
                pictures, drawn = _shown(points, ask), time.monotonic()
                gap_s = max(DRAW_GAP_S, DRAW_GAP_PER_S * (drawn - now))
            yield [pack(progress(item)), *pictures, gr.skip()]


def _shown(points: list[LivePoint], ask: LiveAsk) -> Outputs:
    view = live_view(points, ask.policies)
    return [view.times, pack(view.words), pack(view.table), view.held]
