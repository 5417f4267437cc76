"""What a prefix server is asked, what it has under way and what it has done."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

import numpy as np
from torch import Tensor

from engine.model.cache import RequestCache
from engine.prefix.request import UNKNOWN
from engine.prefix.roles import TypedTokens
from engine.types import Span


@dataclass(frozen=True, eq=False, slots=True)
class ServeRequest:
    """A prompt, and what the cache is told with it: the fields of CacheRequest."""

    prompt: TypedTokens
    time_s: float
    session: int
    turn: int = 0
    is_agent: bool = False
    waits_for_tool: bool = False
    follow_up: float = UNKNOWN


class Prefilled(NamedTuple):
    """A request's first token.

    Args:
        logits: float32 [vocabulary]; hidden: [1, hidden], the last token's state behind the last layer; both may be empty where no
            token was asked for.
        num_reused: prompt tokens that were not computed; the last one always is.
        ttft_s: from the look-up on; spans: what it was spent on.
    """

    logits: Tensor
    hidden: Tensor
    num_reused: int
    ttft_s: float
    spans: tuple[Span, ...]


class Running:
    """A request between its first token and its end; `answer` is what followed so far. Owns its cache until it is closed.

    `has_rest` says that tokens which fill no whole block are kept as a block of their own.

    As a context it is closed on the way out, whatever happened.
    """

    def __init__(self, request: ServeRequest, slot: int | None, cache: RequestCache, close: Callable[["Running"], None]) -> None:
        self.request, self.slot, self.cache = request, slot, cache
        self.answer = request.prompt[:0]
        self.pinned = np.zeros(0, np.int32)
        self.has_rest = False
        self.is_open = True
        self.filled: Prefilled | None = None
        self._close = close

    @property
    def first(self) -> Prefilled:
        """Returns the prefill's result."""
        assert self.filled is not None, "a server gives out no request before its first token"
        return self.filled

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._close(self)


class Served(NamedTuple):
    """What became of a request.

    Args:
        num_tokens: of the prompt.
        path: int32 [n], all blocks of prompt and answer, the first `num_cached` of them in the cache now.
        hit_blocks: prompt blocks that the tree found; num_inserted: blocks of prompt and answer that came in.
        follow_up: predicted probability that the session goes on, as the policy was told it.
        evicted: int32 [E], blocks that left, in order; evicted_queue uint8 [E], evicted_hits int32 [E] as they left.
        tree_s: processor time of tree and policy; insert_s: all of `finish`, pages written included.
    """

    first: Prefilled
    num_tokens: int
    path: np.ndarray
    num_cached: int
    hit_blocks: int
    num_inserted: int
    follow_up: float
    evicted: np.ndarray
    evicted_queue: np.ndarray
    evicted_hits: np.ndarray
    tree_s: float
    insert_s: float


class Occupancy(NamedTuple):
    """Cached blocks by Queue int [4] and by TokenType int [5], and free ones."""

    queues: np.ndarray
    kinds: np.ndarray
    num_free: int
