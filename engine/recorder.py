"""A clock that records what the device and the disk did during one request."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from engine.types import Lane, Span, Stage


class _Queued(NamedTuple):
    """A span of work that was queued on a GPU."""

    lane: Lane
    stage: Stage
    layer: int
    first: torch.cuda.Event
    last: torch.cuda.Event
    size_bytes: int


class Recorder:
    """Collects spans in seconds since it was made. The reader thread and the device's thread may both add to it.

    On CUDA the work of a stage is queued, not done, when Python goes on; device spans are therefore pairs of
    events, resolved by `spans()`.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._done: list[Span] = []
        self._pending: list[_Queued] = []
        if self._cuda:
            torch.cuda.synchronize(device)
            self._base = self._event()
        self._start = time.perf_counter()

    def now(self) -> float:
        """Returns the seconds since the request started."""
        return time.perf_counter() - self._start

    def add(self, lane: Lane, stage: Stage, layer: int, start_s: float, end_s: float, size_bytes: int = 0) -> None:
        """Records a finished span of host time."""
        self._done.append(Span(lane, stage, layer, start_s, end_s, size_bytes))

    def add_events(
        self, lane: Lane, stage: Stage, layer: int, first: torch.cuda.Event, last: torch.cuda.Event, size_bytes: int = 0
    ) -> None:
        """Records a span between two timed events of one stream, which need not have happened yet."""
        self._pending.append(_Queued(lane, stage, layer, first, last, size_bytes))

    @contextmanager
    def device(self, stage: Stage, layer: int = -1) -> Iterator[None]:
        """Records the body as one span of the device lane."""
        if self._cuda:
            first = self._event()
            yield
            self.add_events("device", stage, layer, first, self._event())
            return
        start = self.now()
        yield
        self.add("device", stage, layer, start, self.now())

    def synchronize(self) -> None:
        """Waits until the device has done everything queued so far."""
        if self._cuda:
            torch.cuda.synchronize()

    def spans(self) -> tuple[Span, ...]:
        """Returns all spans in order of their start."""
        self.synchronize()
        for q in self._pending:
            start_s, end_s = (self._base.elapsed_time(event) / 1e3 for event in (q.first, q.last))
            self.add(q.lane, q.stage, q.layer, start_s, end_s, q.size_bytes)
        self._pending.clear()
        return tuple(sorted(self._done, key=lambda span: (span.start_s, span.end_s)))

    def _event(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
