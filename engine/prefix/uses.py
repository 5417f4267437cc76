"""When every block is used: by which request before, and looked up by which next. For the limit and for judging after the fact."""

from dataclasses import dataclass

import numpy as np

from engine.prefix.policy import Future
from engine.prefix.workloads.workload import Workload

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Uses:
    """Every place of every path, in the order of the workload.

    Args:
        request: int64 [P], the request a place belongs to.
        position: int64 [P], place in the request's path.
        is_lookup: bool [P], whether the place is in the prompt.
        previous: int64 [P], the place where the block was used before, -1 the first time.
        next_use: int64 [P], index of the next request that looks the block up, NEVER without one.
    """

    request: np.ndarray
    position: np.ndarray
    is_lookup: np.ndarray
    previous: np.ndarray
    next_use: np.ndarray


def block_uses(workload: Workload) -> Uses:
    """Returns the uses of a workload's blocks; O(P log P)."""
    lengths = np.diff(workload.starts)
    request = np.repeat(np.arange(workload.num_requests), lengths)
    position = np.arange(len(workload.path)) - np.repeat(workload.starts[:-1], lengths)
    is_lookup = position < workload.num_prompt[request]
    order = np.argsort(workload.path, kind="stable")
    blocks = workload.path[order]
    same = np.append(blocks[1:] == blocks[:-1], False)
    previous = np.full(len(order), -1, np.int64)
    previous[order[1:]] = np.where(same[:-1], order[:-1], -1)
    return Uses(request, position, is_lookup, previous, _next_lookups(request, is_lookup, order, same))


def future(workload: Workload, uses: Uses) -> Future:
    """Returns what a limit may see."""
    return Future(workload.starts, uses.next_use)


def _next_lookups(request: np.ndarray, is_lookup: np.ndarray, order: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Returns for every place the next request that looks its block up.

    Args:
        order: places sorted by block, then time; same: whether the next in that order is of the same block.
    """
    num = len(order)
    # For each place in `order`, the first lookup at or behind it, whatever its block; then kept only within the block.
    at = np.where(is_lookup[order], np.arange(num), num)
    coming = np.minimum.accumulate(at[::-1])[::-1]
    after = np.append(coming[1:], num)
    last_of_block = np.flatnonzero(~same)
    ends = last_of_block[np.searchsorted(last_of_block, np.arange(num))]
    found = after <= ends
    next_use = np.full(num, NEVER, np.int64)
    next_use[order[found]] = request[order[after[found]]]
    return next_use
