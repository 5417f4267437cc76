"""What an eviction policy is: a frozen configuration that makes a ranker; the tree does everything else.

A ranker only ranks and learns from what the tree tells it. It never changes structure, and looks at columns of blocks that
are cached or remembered, never at requests to come (`needs_future` marks the one limit that does).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.leaves import LeafHeap
from engine.prefix.request import CacheRequest
from engine.registry import Registry, field_names

NOTHING = -1


class Reason(NamedTuple):
    """Why a block is the next to leave: one sentence, and the factors of its score by name."""

    sentence: str
    factors: Mapping[str, float]


class Ranker(ABC):
    """The state of a policy over one run. Methods are called in this order for every request:

    `on_lookup` (columns as they were before the request), `victim` and `evict` as often as room is needed, `on_evicted`, `on_touch`
    (columns as they are now), and `add_leaf` or `drop_leaf` whenever a block starts or stops to be a candidate.
    """

    selective: ClassVar[bool] = False

    def on_lookup(self, request: CacheRequest, num_hits: int) -> Any:
        """Learns from a request before anything is changed: the first `num_hits` blocks of its path are cached prompt blocks.

        Returns what `on_touch` of the same request is to be told; others may be looked up in between.
        """
        return None

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: Any) -> None:
        """Classifies the blocks of a request: the first `num_cached` of its path are in the cache now.

        Called once more where an answer is inserted behind its prompt.

        Args:
            noted: what `on_lookup` returned.
        """
        return None

    @abstractmethod
    def add_leaf(self, block: int) -> None:
        """Takes a block among the candidates: cached, without cached children, unreferenced, unpinned."""

    @abstractmethod
    def drop_leaf(self, block: int) -> None:
        """Takes a block from the candidates: it got a child, is in use or was pinned."""

    @abstractmethod
    def victim(self, now_s: float) -> int:
        """Returns the candidate that should leave, NOTHING where there is none. Asking twice gives the same answer."""

    @abstractmethod
    def candidates(self) -> Iterator[int]:
        """Returns all candidates, in no order; for checks."""

    def evict(self, block: int, now_s: float) -> None:
        """Takes a block from the candidates because it leaves the cache."""
        self.drop_leaf(block)

    def on_evicted(self, blocks: list[int], now_s: float) -> None:
        """Learns which blocks have left since it was last told, in order; at least one."""
        return None

    def on_forget(self, block: int, now_s: float) -> None:
        """Learns that an evicted block drops out of the list of those remembered."""
        return None

    def prefers(self, block: int, victim: int) -> bool:
        """Whether a new block is worth the place of a candidate; asked where `selective` is set."""
        return True

    def weights(self) -> dict[str, float]:
        """Returns what has been learned so far, by name; the names stay the same over a run."""
        return {}

    def explain(self, block: int, now_s: float) -> Reason:
        """Returns why a candidate stands where it stands."""
        return Reason("evicted: first in the policy's order.", {})


class OrderedRanker(Ranker):
    """Candidates in one order by a key that stays the same while a block remains a candidate."""

    def __init__(self, columns: BlockColumns) -> None:
        self.columns = columns
        self.leaves = LeafHeap()

    @abstractmethod
    def entry(self, block: int) -> tuple:
        """Returns the block's place in the order: its key, the block last."""

    def add_leaf(self, block: int) -> None:
        self.leaves.push(self.entry(block))

    def drop_leaf(self, block: int) -> None:
        self.leaves.discard(block)

    def victim(self, now_s: float) -> int:
        first = self.leaves.first()
        return NOTHING if first is None else first[-1]

    def candidates(self) -> Iterator[int]:
        return iter(self.leaves)


class Future(NamedTuple):
    """What is still to come, for the limit alone.

    Args:
        starts: int64 [requests + 1], where each request's path begins in `next_use`.
        next_use: int64, for every block of every path the index of the next request that looks it up.
    """

    starts: np.ndarray
    next_use: np.ndarray


class EvictionPolicy(ABC):
    """A rule that chooses what leaves; its fields are its whole configuration.

    Class attributes: `ghost_ratio`, how many evicted blocks are remembered for each block of capacity; `needs_future`, whether
    it is a limit that sees requests to come.
    """

    name: ClassVar[str]
    needs_future: ClassVar[bool] = False
    ghost_ratio: float = 0.0

    @abstractmethod
    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> Ranker:
        """Returns the state for one run over a cache of `capacity` blocks."""

    def params(self) -> dict[str, bool | float | int | str]:
        """Returns the configuration, field by field."""
        return {field: getattr(self, field) for field in field_names(type(self))}


POLICIES: Registry[EvictionPolicy] = Registry("policy")
