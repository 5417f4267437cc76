"""Ten moments of a workload at which one of five blocks must leave: to play against LRU, SAECache and MIN.

The cache is SAECache's; LRU and MIN choose among the same blocks at the same moments. Moments are spread evenly over the second half
of the workload, whatever comes out.
"""

from dataclasses import dataclass

import numpy as np

from engine.cache_types import KIND_NAMES, QUEUE_NAMES
from engine.errors import BadRequest
from engine.prefix.lab import ReplayLab
from engine.prefix.policies import POLICIES
from engine.prefix.request import CacheRequest
from engine.prefix.tree import PrefixTree
from engine.prefix.workloads.workload import Workload

NUM_MOMENTS, NUM_CARDS = 10, 5
NEVER = -1
PLAYERS = ("lru", "saecache", "min")


@dataclass(frozen=True, slots=True)
class Card:
    """A block that may leave.

    Args:
        start_tokens: from the prompt's start; num_sessions: that used it; hits: since it was inserted.
        next_request: that asks for it again, NEVER without one; next_s: seconds until then, 0 without one.
    """

    block: int
    kind: str
    queue: str
    start_tokens: int
    hits: int
    num_sessions: int
    idle_s: float
    next_request: int
    next_s: float


@dataclass(frozen=True, slots=True)
class Moment:
    """One choice: the request that needs room, the cards, and each player's as its place among them."""

    request: int
    time_s: float
    cards: tuple[Card, ...]
    choices: dict[str, int]


@dataclass(frozen=True, slots=True)
class EvictionGame:
    """Where the moments are from, and the moments."""

    workload: str
    capacity_blocks: int
    seed: int
    moments: tuple[Moment, ...]

    def num_lost(self, player: str) -> int:
        """Returns how many of a player's ten victims are asked for again."""
        return sum(moment.cards[moment.choices[player]].next_request != NEVER for moment in self.moments)


def make_game(lab: ReplayLab, capacity: int, seed: int) -> EvictionGame:
    """Returns a game over a workload; the same arguments give the same game. Raises BadRequest where there is too little to choose."""
    workload, rng = lab.workload, np.random.default_rng([seed, capacity])
    tree = PrefixTree(workload.columns(), capacity, POLICIES.create("saecache"))
    lookups = _Lookups(workload)
    due = iter(np.linspace(workload.num_requests // 2, workload.num_requests - 2, NUM_MOMENTS).astype(int).tolist())
    wanted, moments = next(due), []
    for request in workload.requests():
        lease = tree.begin(request)
        must_evict = len(request.path) - lease.num_cached > tree.capacity - tree.size
        if request.index >= wanted and must_evict and int(tree.columns.leaf.sum()) >= NUM_CARDS:
            moments.append(_moment(tree, request, lookups, rng))
            if len(moments) == NUM_MOMENTS:
                break
            wanted = next(due)
        tree.extend(lease)
        tree.end(lease)
    if len(moments) < NUM_MOMENTS:
        raise BadRequest(f"Only {len(moments)} moments of {workload.name!r} have something to evict; choose a smaller cache.")
    return EvictionGame(workload.name, capacity, seed, tuple(moments))


class _Lookups:
    """Finds the next request after another that looks a block up."""

    def __init__(self, workload: Workload) -> None:
        lengths = np.diff(workload.starts)
        request = np.repeat(np.arange(workload.num_requests), lengths)
        position = np.arange(len(workload.path)) - np.repeat(workload.starts[:-1], lengths)
        is_prompt = position < workload.num_prompt[request]
        self._num = workload.num_requests + 1
        self._keys = np.sort(workload.path[is_prompt].astype(np.int64) * self._num + request[is_prompt])
        self._time_s = workload.time_s

    def after(self, blocks: np.ndarray, request: int) -> np.ndarray:
        """Returns int64 [n], the next request behind `request` for each block, NEVER without one."""
        at = np.searchsorted(self._keys, blocks.astype(np.int64) * self._num + request, side="right")
        keys = np.append(self._keys, -1)[at]
        return np.where(keys // self._num == blocks, keys % self._num, NEVER)

    def seconds(self, request: int, later: int) -> float:
        """Returns the time between two requests."""
        return float(self._time_s[later] - self._time_s[request])


def _moment(tree: PrefixTree, request: CacheRequest, lookups: _Lookups, rng: np.random.Generator) -> Moment:
    c, leaves = tree.columns, np.flatnonzero(tree.columns.leaf)
    coming = lookups.after(leaves, request.index)
    far = np.where(coming == NEVER, np.iinfo(np.int64).max, coming)
    picks = {
        "lru": int(leaves[np.lexsort((-c.depth[leaves], c.tick[leaves]))[0]]),
        "saecache": int(tree.ranker.victim(request.time_s)),
        "min": int(leaves[np.lexsort((c.tick[leaves], -far))[0]]),
    }
    shown = list(dict.fromkeys(picks.values()))
    traps = [int(block) for block in leaves[coming != NEVER] if int(block) not in shown]
    if traps:
        shown.append(int(rng.choice(traps)))
    rest = [int(block) for block in leaves if int(block) not in shown]
    shown += [int(block) for block in rng.choice(rest, min(len(rest), NUM_CARDS - len(shown)), replace=False)]
    shown = [shown[i] for i in rng.permutation(len(shown))]
    cards = tuple(_card(tree, block, request, lookups) for block in shown)
    return Moment(request.index, request.time_s, cards, {player: shown.index(block) for player, block in picks.items()})


def _card(tree: PrefixTree, block: int, request: CacheRequest, lookups: _Lookups) -> Card:
    c = tree.columns
    later = int(lookups.after(np.array([block]), request.index)[0])
    return Card(
        block=block,
        kind=KIND_NAMES[c.kind[block]],
        queue=QUEUE_NAMES[c.queue[block]],
        start_tokens=int(c.depth[block]) * c.block_tokens,
        hits=int(c.hits[block]),
        num_sessions=int(c.num_sessions[block]),
        idle_s=request.time_s - float(c.last_s[block]),
        next_request=later,
        next_s=0.0 if later == NEVER else lookups.seconds(request.index, later),
    )
