"""Runs on a GPU that is lent for one call, as ZeroGPU lends it: in a process forked for the call, whose state ends with it.

The process that serves the page never touches the GPU. What a run leaves behind is its chunk caches, on disk. Knows nothing of who lends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import BackendUnavailable, Cancelled, EngineError
from engine.settings import Settings
from engine.streaming import streamed
from engine.told import compare_told
from engine.types import FusionRequest, Run, Status

Item = Status | Run | EngineError
Call = Callable[[str, Settings, FusionRequest, tuple[str, ...]], Generator[Item, None, None]]

# Generous guesses, as a call that takes longer than it asked for may be ended: a process's start with a small model's loading, one timed
# prefill with its setting up, one token of an answer, and the cache of a passage that is not stored yet.
_START_S, _PREFILL_S, _ANSWER_TOKEN_S, _CHUNK_S = 20.0, 1.0, 0.06, 0.4
_LONGEST_S = 120


@dataclass(frozen=True, slots=True)
class GpuCalls:
    """Runs requests through a lender's version of `run_on_gpu`."""

    call: Call

    def run(
        self,
        model: str,
        settings: Settings,
        request: FusionRequest,
        methods: tuple[str, ...],
        on_status: Callable[[Status], None],
        cancelled: Callable[[], bool],
    ) -> Run:
        """Returns the run as it came back from the GPU. Raises EngineError; BackendUnavailable where no GPU could be had."""
        on_status(Status("Waiting for a GPU", 0.0))
        run = None
        with closing(self.call(model, settings, request, methods)) as items:
            for item in items:
                if isinstance(item, EngineError):
                    raise item
                if isinstance(item, Run):
                    run = item
                    continue
                on_status(item)
                if cancelled():
                    raise Cancelled("Stopped on the GPU; chunk caches that were finished are kept.")
        if run is None:
            raise BackendUnavailable("The GPU was taken back before the run was whole; try again, with fewer methods or repeats.")
        return run


def run_on_gpu(model: str, settings: Settings, request: FusionRequest, methods: tuple[str, ...]) -> Generator[Item, None, None]:
    """Yields what the run is doing and, last, the run, in the process that has the GPU. The model is loaded for this call alone.

    An error is yielded, not raised, as nothing but its kind would come through to the page. Arguments and items are pickled.
    """

    def work(put: Callable[[Any], None], is_stopped: Callable[[], bool]) -> None:
        from engine.runtime import load_runtime

        put(compare_told(lambda: load_runtime(model, in_call(settings)), request, methods, put, is_stopped))

    try:
        items: Iterator[Status | Run] = streamed(work, "gpu-run")
        yield from items
    except EngineError as error:
        yield error


def in_call(settings: Settings) -> Settings:
    """Returns the settings of a call: the GPU where there is one, torch's kernels unless others are named, one CPU thread.

    Thread pools do not survive a fork: a second thread would wait for workers that only the parent has.
    """
    return replace(settings, device="auto", kernels="torch" if settings.kernels == "auto" else settings.kernels, num_threads=1)


def gpu_seconds(model: str, settings: Settings, request: FusionRequest, methods: tuple[str, ...]) -> int:
    """Returns how long a GPU is asked for: whole seconds, from what the request will do. It takes the arguments of `run_on_gpu`."""
    of_methods = len(methods) * (request.repeats * _PREFILL_S + request.max_new_tokens * _ANSWER_TOKEN_S)
    return min(_LONGEST_S, math.ceil(_START_S + len(request.chunks) * _CHUNK_S + of_methods))
