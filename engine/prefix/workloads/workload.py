"""A workload: requests in order of time, as columns, and the tree of blocks their prompts are made of."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import BlockColumns
from engine.prefix.predictor_scores import LIKELY
from engine.prefix.request import UNKNOWN, CacheRequest


@dataclass(frozen=True, eq=False)
class Workload:
    """R requests over B distinct blocks. Holds no text.

    Args:
        name: what it is called in results.
        block_size: tokens a block.
        time_s: float64 [R], not decreasing.
        session, turn: int32 [R]; turns of a session count from 0.
        is_agent, waits_for_tool: bool [R].
        num_tokens: int32 [R], tokens of the prompt.
        num_prompt: int32 [R], blocks of the prompt; the rest of a path is the answer's.
        starts: int64 [R + 1], where each path begins in `path`.
        path: int32 [P], block numbers.
        parent, depth, kind: of the blocks, as BlockColumns takes them.
        content: int32 [B], equal where blocks hold the same tokens behind different prefixes; None where that is not known.
        follow_up: float32 [R], predicted probability that the session goes on; all UNKNOWN without a predictor.
        notes: sentences about what was assumed while reading or generating it.
    """

    name: str
    block_size: int
    time_s: np.ndarray
    session: np.ndarray
    turn: np.ndarray
    is_agent: np.ndarray
    waits_for_tool: np.ndarray
    num_tokens: np.ndarray
    num_prompt: np.ndarray
    starts: np.ndarray
    path: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    kind: np.ndarray
    content: np.ndarray | None
    follow_up: np.ndarray
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.time_s):
            raise BadRequest(f"The workload {self.name!r} holds no requests; choose one that does.")
        assert len(self.starts) == self.num_requests + 1 and self.starts[-1] == len(self.path)

    @property
    def num_requests(self) -> int:
        """Returns R."""
        return len(self.time_s)

    @property
    def num_blocks(self) -> int:
        """Returns B, the number of distinct blocks."""
        return len(self.parent)

    def columns(self) -> BlockColumns:
        """Returns fresh columns of all its blocks, none of them cached."""
        return BlockColumns(self.parent, self.depth, self.kind, self.block_size)

    def requests(self) -> Iterator[CacheRequest]:
        """Yields the requests in order."""
        starts = self.starts.tolist()
        values = (self.session, self.turn, self.is_agent, self.waits_for_tool, self.follow_up, self.num_tokens)
        rows = zip(self.time_s.tolist(), *(column.tolist() for column in values), self.num_prompt.tolist(), strict=True)
        for i, (time_s, session, turn, is_agent, waits, follow_up, num_tokens, num_prompt) in enumerate(rows):
            path = self.path[starts[i] : starts[i + 1]]
            yield CacheRequest(i, time_s, session, turn, is_agent, waits, follow_up, num_tokens, path, num_prompt)

    @cached_property
    def goes_on(self) -> np.ndarray:
        """Returns bool [R], whether the session of a request has a later one: what a predictor tries to tell."""
        last = np.zeros(int(self.session.max()) + 1, np.int64)
        last[self.session] = np.arange(self.num_requests)
        return last[self.session] != np.arange(self.num_requests)

    def predicted(self, accuracy: float, seed: int) -> "Workload":
        """Returns the workload with a predictor that is right with a probability, drawn for every request by itself.

        Predictions are probabilities .85 and .30 as a calibrated predictor of middling quality gives them; with accuracy 1 an oracle's
        1 and 0.
        """
        if not 0.0 <= accuracy <= 1.0:
            raise BadRequest(f"The predictor's accuracy is {accuracy}; it must be a number from 0 to 1.")
        wrong = np.random.default_rng(seed).random(self.num_requests) >= accuracy
        high, low = (1.0, 0.0) if accuracy == 1.0 else (0.85, 0.30)
        return replace(self, follow_up=np.where(self.goes_on ^ wrong, high, low).astype(np.float32))

    @property
    def share_right(self) -> float:
        """Returns the share of requests whose prediction, taken as yes from 0.5 on, is right."""
        return float(((self.follow_up >= LIKELY) == self.goes_on).mean())

    def unpredicted(self) -> "Workload":
        """Returns the workload without predictions."""
        return replace(self, follow_up=np.full(self.num_requests, UNKNOWN, np.float32))
