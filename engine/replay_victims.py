"""The next blocks to leave a cache, in order, each with its policy's reason: what "why this one" shows."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.cache_types import KIND_NAMES, QUEUE_NAMES
from engine.errors import BadRequest, Cancelled
from engine.prefix.lab import ReplayLab
from engine.prefix.policy import NOTHING, EvictionPolicy, Reason
from engine.prefix.request import CacheRequest
from engine.prefix.tree import Lease, PrefixTree
from engine.prefix.uses import future


@dataclass(frozen=True, slots=True)
class Victim:
    """A block about to leave.

    Args:
        request: during which it leaves; depth: blocks from the prompt's start; hits: since it was inserted.
        sentence: the policy's reason; factors: those of its score, by name.
    """

    request: int
    block: int
    kind: str
    queue: str
    depth: int
    hits: int
    idle_s: float
    sentence: str
    factors: tuple[tuple[str, float], ...]

    def factor(self, name: str) -> float | None:
        """Returns one factor of the score, None where the policy has none of that name."""
        return dict(self.factors).get(name)


def next_victims(
    lab: ReplayLab, policy: EvictionPolicy, capacity: int, moment: int, count: int, cancelled: Callable[[], bool] = lambda: False
) -> tuple[Victim, ...]:
    """Returns the first `count` blocks that leave from request `moment` on; fewer where the workload ends.

    The workload is replayed up to there; then blocks are inserted one at a time, so that every choice can be asked about before it is
    carried out. Raises BadRequest, Cancelled.
    """
    workload = lab.workload
    if not 0 <= moment < workload.num_requests:
        raise BadRequest(f"The moment is request {moment}; it must be from 0 to {workload.num_requests - 1:,}.")
    coming = future(workload, lab.uses) if policy.needs_future else None
    tree = PrefixTree(workload.columns(), capacity, policy, future=coming)
    found: list[Victim] = []
    for request in workload.requests():
        if cancelled():
            raise Cancelled("Stopped.")
        lease = tree.begin(request)
        if request.index < moment:
            tree.extend(lease)
        else:
            _extend_asking(tree, lease, found, count)
        tree.end(lease)
        if len(found) >= count:
            break
    return tuple(found)


def _extend_asking(tree: PrefixTree, lease: Lease, found: list[Victim], count: int) -> None:
    """Inserts a request's blocks one at a time and notes who leaves for each."""
    path, now_s = lease.request.path, lease.request.time_s
    tree.extend(lease, lease.num_cached)
    for stop in range(lease.num_cached + 1, len(path) + 1):
        block = tree.ranker.victim(now_s) if tree.size >= tree.capacity else NOTHING
        seen = None if block == NOTHING else _victim(tree, block, lease.request, tree.ranker.explain(block, now_s))
        admission = tree.extend(lease, stop)
        if admission.num_cached < stop:
            return
        if seen is not None:
            assert admission.evicted == [block], "what left is not what was asked about"
            found.append(seen)
            if len(found) >= count:
                return


def _victim(tree: PrefixTree, block: int, request: CacheRequest, reason: Reason) -> Victim:
    c = tree.columns
    return Victim(
        request=request.index,
        block=block,
        kind=KIND_NAMES[c.kind[block]],
        queue=QUEUE_NAMES[c.queue[block]],
        depth=int(c.depth[block]),
        hits=int(c.hits[block]),
        idle_s=request.time_s - float(c.last_s[block]),
        sentence=reason.sentence,
        factors=tuple(reason.factors.items()),
    )
