"""Decode steps with everything at fixed places in memory, so that a GPU can be told once what to do and then only: again.

A step reads its token and its position from the device. The same launches then serve every token of an answer, and every
answer behind the same cache, which is what CUDA graphs need.
"""

import logging
from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from engine.model.batch_cache import CacheShare
from engine.model.cache import PLAIN, RequestCache
from engine.model.decoder import Decoder, Rows
from kernels.rows import RowBlock, RowSet

# A token and its position in the cache -> float32 logits [vocabulary] of the next one, good until the next call.
Step = Callable[[int, int], Tensor]
# Work on fixed memory -> the same work, to be repeated; what it returns is overwritten each time.
Capture = Callable[[Callable[[], Tensor]], Callable[[], Tensor]]

logger = logging.getLogger(__name__)


def eager_step(decoder: Decoder, cache: RequestCache) -> Step:
    """Returns the step that launches everything anew for each token."""
    return lambda token, position: decoder.extend(torch.tensor([token]), position, cache)[0]


class FixedStep:
    """The decode step behind one cache. Its attention must find its last key by the row's position on the device.

    Attention is launched for the cache's whole capacity, and stops at the position.
    """

    def __init__(self, decoder: Decoder, cache: RequestCache) -> None:
        self._decoder = decoder
        # The same memory, but not the object, which whoever owns it may let go.
        self._cache = CacheShare(cache.keys, cache.values)
        self._token, self._position = (torch.zeros(1, dtype=torch.int64, device=decoder.device) for _ in range(2))
        self._cos, self._sin = decoder.rope(torch.arange(cache.capacity))
        self._rows = RowSet(self._position, (RowBlock(0, 1, cache.capacity, cache.capacity, None),), is_prefix=False)

    def aim(self, token: int, position: int) -> None:
        """Sets what `compute` reads."""
        self._token.fill_(token)
        self._position.fill_(position)

    def compute(self) -> Tensor:
        """Returns the logits [vocabulary] behind the token, having written its K and V; waits for nothing on the host."""
        decoder, hidden = self._decoder, self._decoder.embed(self._token)
        rows = Rows(self._rows, self._cos.index_select(0, self._position), self._sin.index_select(0, self._position))
        for layer in range(decoder.spec.num_layers):
            hidden = decoder.run_layer(layer, hidden, rows, self._cache)
        return decoder.logits(hidden)[0]


def capture_graph(compute: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Returns `compute` as a CUDA graph. Raises RuntimeError where CUDA refuses."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        # Kernels are compiled and libraries make their workspaces outside of the graph, which could not record that.
        for _ in range(2):
            compute()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    # Other requests' threads may use the GPU meanwhile.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        logits = compute()

    def replay() -> Tensor:
        graph.replay()
        return logits

    return replay


class DecodeSteps:
    """Hands out decode steps of one decoder: captured once for each cache and its capacity, or eager, and says why.

    Args:
        capture: makes a step repeatable; CUDA graphs on a GPU and nothing on a CPU unless given.

    Attributes:
        hindrance: why steps are eager, None where they are captured.
    """

    def __init__(self, decoder: Decoder, capture: Capture | None = None) -> None:
        self._decoder = decoder
        self._capture = capture or (capture_graph if decoder.device.type == "cuda" else None)
        self._captured: WeakKeyDictionary[RequestCache, Step] = WeakKeyDictionary()
        self.hindrance: str | None = None
        if self._capture is None:
            self.hindrance = "a CPU has none"
        elif not decoder.ops.has_own("sparse_prefill_attention"):
            self.hindrance = f"the attention of {decoder.ops.name} needs its last key on the host"

    @property
    def note(self) -> str:
        """Returns what a run records behind the name of its kernels; nothing on a CPU."""
        if self._decoder.device.type == "cpu":
            return ""
        return ", decode by CUDA graphs" if self.hindrance is None else f", decode without CUDA graphs ({self.hindrance})"

    def of(self, cache: RequestCache) -> Step:
        """Returns the step of a cache as it is read now; the first call of a captured one captures it."""
        if self.hindrance is not None or cache.reading != PLAIN:
            return eager_step(self._decoder, cache)
        if cache not in self._captured:
            self._captured[cache] = self._capturing(FixedStep(self._decoder, cache))
        captured, eager = self._captured[cache], eager_step(self._decoder, cache)

        def step(token: int, position: int) -> Tensor:
            if self.hindrance is None:
                try:
                    return captured(token, position)
                except RuntimeError as error:
                    self._give_up(error)
            return eager(token, position)

        return step

    def _capturing(self, fixed: FixedStep) -> Step:
        """Returns a step that captures itself when it is first called. Raises RuntimeError where CUDA refuses."""
        repeat: list[Callable[[], Tensor]] = []

        def step(token: int, position: int) -> Tensor:
            fixed.aim(token, position)
            if not repeat:
                assert self._capture is not None, "only what can be captured gets here"
                repeat.append(self._capture(fixed.compute))
            return repeat[0]()

        return step

    def _give_up(self, error: RuntimeError) -> None:
        """Decodes eagerly from now on and keeps the reason, the first line of what CUDA said."""
        self.hindrance = f"CUDA refused: {(str(error).strip().splitlines() or [type(error).__name__])[0][:200]}"
        self._captured.clear()
        logger.warning("decode%s", self.note)
