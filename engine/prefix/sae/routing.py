"""Routing of requests to the four queues (2605.18825, section on multi-queue management; rules in order).

1 the answer of a request that is not believed to go on: EVICT_FIRST. 2, 3 a request with history: AGENT with tools, CHAT without.
4 a first request that the predictor expects to go on: the same. 5 a first request behind a template: STRUCTURAL.
6 any other first request: EVICT_FIRST. Our choices where the paper is silent: the tool test of rule 4; the answer of a request
believed to go on stays with its session; without a predictor every session is believed to go on.
"""

from typing import NamedTuple

import numpy as np

from engine.prefix.blocks import BlockColumns, Queue
from engine.prefix.request import UNKNOWN, CacheRequest

LIKELY = 0.5
_SESSION = int(Queue.CHAT)


class Route(NamedTuple):
    """The queues of a request's prompt and of its answer."""

    prompt: Queue
    answer: Queue


def route(request: CacheRequest, is_templated: bool, answers_stay: bool = True) -> Route:
    """Returns where a request's blocks go.

    Args:
        answers_stay: whether answers of sessions that go on stay with them (or are evicted first: texts on the paper differ).
    """
    if request.turn > 0 or request.follow_up == UNKNOWN or request.follow_up >= LIKELY:
        session = Queue.AGENT if request.is_agent else Queue.CHAT
        return Route(session, session if answers_stay else Queue.EVICT_FIRST)
    return Route(Queue.STRUCTURAL if is_templated else Queue.EVICT_FIRST, Queue.EVICT_FIRST)


def is_templated(request: CacheRequest, columns: BlockColumns) -> bool:
    """Whether another session has touched the first block of a request's prompt and that is still cached or remembered."""
    if not request.num_prompt:
        return False
    at, first = columns.scalars, int(request.path[0])
    return bool((at.cached[first] or at.ghost[first]) and (at.owner[first] != request.session or at.num_sessions[first] > 1))


def rerouted(old: np.ndarray, queue: int) -> np.ndarray | int:
    """Returns the queues of cached prompt blocks uint8 [n] that a request of a queue hits: the request's, but a session's blocks
    are not taken from it by a request that is not believed to go on (our choice)."""
    return queue if queue >= _SESSION else np.where(old >= _SESSION, old, queue)
