"""Which conversation a request belongs to, and what the policy is told of it. Knows nothing of SGLang."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from engine.prefix.blocks import BlockColumns, TokenType, num_leading
from engine.prefix.request import CacheRequest
from engine.serving.sglang.metadata import RequestMeta

_SESSIONS_KEPT = 100_000


class Conversations:
    """Numbers sessions in order of their first request; those not heard of for long are numbered anew."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str | int, tuple[int, int]] = OrderedDict()
        self._num_sessions = 0

    def request(
        self, meta: RequestMeta, columns: BlockColumns, path: np.ndarray, kinds: Sequence[int], num_tokens: int, index: int, time_s: float
    ) -> CacheRequest:
        """Returns what the policy is told.

        Args:
            path: int32, blocks of the prompt.
            kinds: types of its tokens; a tool's output among them makes it an agent's where the request does not say.
        """
        name: str | int | None = meta.session if meta.session is not None else _continued(columns, path)
        session, turn = self._next(name)
        agent = meta.agent if meta.agent is not None else bool((np.asarray(kinds) == TokenType.TOOL_OUTPUT).any())
        turn = turn if meta.turn is None else meta.turn
        return CacheRequest(index, time_s, session, turn, agent, meta.waits_for_tool, meta.follow_up, num_tokens, path, len(path))

    def _next(self, name: str | int | None) -> tuple[int, int]:
        """Returns a session's number and how many requests it has had before; None is a new one."""
        if name not in self._turns:
            number, self._num_sessions = self._num_sessions, self._num_sessions + 1
            # What nobody named, or an owner that named itself, is found again by its number.
            name, entry = (name if isinstance(name, str) else number), (number, 0)
        else:
            number, turn = self._turns.pop(name)
            entry = (number, turn + 1)
        self._turns[name] = entry
        if len(self._turns) > _SESSIONS_KEPT:
            self._turns.popitem(last=False)
        return entry


def _continued(columns: BlockColumns, path: np.ndarray) -> int | None:
    """Returns the session that the deepest cached block belongs to alone, None where it is shared or system text."""
    found = num_leading(columns.cached[path])
    if not found:
        return None
    block = int(path[found - 1])
    if columns.num_sessions[block] != 1 or columns.kind[block] == TokenType.SYSTEM:
        return None
    return int(columns.owner[block])
