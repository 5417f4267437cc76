"""Builds a workload request by request: names blocks by their prefix, checks what a trace must keep to."""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import NO_PARENT, TokenType
from engine.prefix.request import UNKNOWN
from engine.prefix.workloads.workload import Workload

# What a log may need: some gibibytes of memory while it is read.
MAX_BLOCKS, MAX_PATHS = 10_000_000, 100_000_000


class Arrival(NamedTuple):
    """A request's facts beside its blocks, as CacheRequest has them; `session` is any name."""

    time_s: float
    session: Hashable
    num_tokens: int
    is_agent: bool = False
    waits_for_tool: bool = False
    turn: int | None = None


class WorkloadBuilder:
    """Collects requests in any order; `build` sorts them by time."""

    def __init__(self, name: str, block_size: int) -> None:
        self.name, self.block_size = name, block_size
        self._ids: dict[tuple[int, Hashable], int] = {}
        self._parent: list[int] = []
        self._depth: list[int] = []
        self._kind: list[int] = []
        self._content: list[int] = []
        self._contents: dict[Hashable, int] = {}
        self._arrivals: list[Arrival] = []
        self._paths: list[np.ndarray] = []
        self._num_prompt: list[int] = []
        self._num_in_paths = 0

    def __len__(self) -> int:
        return len(self._arrivals)

    def blocks(
        self,
        keys: Sequence[Hashable],
        kinds: Sequence[int] | None = None,
        behind: int = NO_PARENT,
        contents: Sequence[Hashable] | None = None,
    ) -> list[int]:
        """Returns the numbers of blocks that follow one another, new ones where a key was not seen behind the same block yet.

        Args:
            kinds: token type of each; USER without it. Those of the first time count.
            behind: the block before the first.
            contents: name of what each block holds, whatever stands before it.
        Raises:
            BadRequest: there are more than memory is to hold.
        """
        ids, found, parent = self._ids, [], behind
        for i, key in enumerate(keys):
            number = ids.setdefault((parent, key), len(self._parent))
            if number == len(self._parent):
                self._parent.append(parent)
                self._depth.append(self._depth[parent] + 1 if parent >= 0 else 0)
                self._kind.append(TokenType.USER if kinds is None else kinds[i])
                self._content.append(-1 if contents is None else self._contents.setdefault(contents[i], len(self._contents)))
            found.append(number)
            parent = number
        if len(self._parent) > MAX_BLOCKS:
            raise self._too_large(f"{MAX_BLOCKS:,} different blocks of {self.block_size} tokens")
        return found

    def add(self, arrival: Arrival, path: Sequence[int], num_prompt: int | None = None) -> None:
        """Adds a request over numbered blocks, all of them the prompt's without `num_prompt`. Raises BadRequest where they are too many."""
        self._arrivals.append(arrival)
        self._paths.append(np.asarray(path, np.int32))
        self._num_prompt.append(len(path) if num_prompt is None else num_prompt)
        self._num_in_paths += len(path)
        if self._num_in_paths > MAX_PATHS:
            raise self._too_large(f"{MAX_PATHS:,} blocks in all of its prompts")

    def _too_large(self, limit: str) -> BadRequest:
        done = f"after {len(self):,} requests"
        return BadRequest(f"The log {self.name!r} has more than {limit} {done}; choose one with fewer or shorter requests.")

    def build(self, notes: tuple[str, ...] = (), until_s: float = math.inf) -> Workload:
        """Returns the workload up to a time, its blocks numbered in order of their first use. Raises BadRequest where it is empty."""
        times = np.array([arrival.time_s for arrival in self._arrivals], np.float64)
        order = np.argsort(times, kind="stable")
        order = order[times[order] <= until_s]
        if not len(order):
            raise BadRequest(f"The workload {self.name!r} holds no requests; choose one that does.")
        arrivals = [self._arrivals[i] for i in order]
        paths = [self._paths[i] for i in order]
        numbers: dict[Hashable, int] = {}
        session = [numbers.setdefault(arrival.session, len(numbers)) for arrival in arrivals]
        path = np.concatenate(paths)
        used, first = np.unique(path, return_index=True)
        kept = used[np.argsort(first)]
        number_of = np.full(len(self._parent) + 1, NO_PARENT, np.int32)
        number_of[kept] = np.arange(len(kept))
        content = np.array(self._content, np.int32)[kept]
        return Workload(
            name=self.name,
            block_size=self.block_size,
            time_s=times[order],
            session=np.array(session, np.int32),
            turn=np.array(_turns(arrivals, session), np.int32),
            is_agent=np.array([arrival.is_agent for arrival in arrivals], np.bool_),
            waits_for_tool=np.array([arrival.waits_for_tool for arrival in arrivals], np.bool_),
            num_tokens=np.array([arrival.num_tokens for arrival in arrivals], np.int32),
            num_prompt=np.array(self._num_prompt, np.int32)[order],
            starts=np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64),
            path=number_of[path],
            # A first block's parent is -1, which is the last row of `number_of`.
            parent=number_of[np.array(self._parent, np.int32)[kept]],
            depth=np.array(self._depth, np.int32)[kept],
            kind=np.array(self._kind, np.uint8)[kept],
            content=content if len(content) and content.min() >= 0 else None,
            follow_up=np.full(len(arrivals), UNKNOWN, np.float32),
            notes=notes,
        )


def _turns(arrivals: Sequence[Arrival], session: Sequence[int]) -> list[int]:
    """Returns each request's turn: as given, otherwise how many of its session came before."""
    seen: dict[int, int] = {}
    turns = []
    for arrival, number in zip(arrivals, session, strict=True):
        turn = seen.get(number, 0) if arrival.turn is None else arrival.turn
        seen[number] = turn + 1
        turns.append(turn)
    return turns
