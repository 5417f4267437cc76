"""What the cache is told of a request: when, whose, and the blocks of its prompt and of its answer."""

from typing import NamedTuple

import numpy as np

UNKNOWN = -1.0


class CacheRequest(NamedTuple):
    """One request to a prefix cache.

    Args:
        index: its place in the workload, from 0.
        session: number of the conversation it belongs to.
        turn: how many requests of the session came before.
        is_agent: the session has tools.
        waits_for_tool: the answer ends in a tool call, so that the next request comes without a person's doing.
        follow_up: predicted probability that the session goes on, UNKNOWN where nobody predicted.
        num_tokens: of the prompt.
        path: int32, blocks in order: the prompt's, then the answer's.
        num_prompt: how many of `path` are the prompt's and can be hits.
    """

    index: int
    time_s: float
    session: int
    turn: int
    is_agent: bool
    waits_for_tool: bool
    follow_up: float
    num_tokens: int
    path: np.ndarray
    num_prompt: int
