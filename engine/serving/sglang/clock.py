"""The time that a policy goes by: the server's, or that of a client which replays a trace."""

import time


class PolicyClock:
    """Never runs backwards, but when the first request brings its own time: from then on it follows the requests'."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._is_told = False

    def begin(self, told_s: float | None) -> float:
        """Returns the time of a request, in seconds."""
        if told_s is None:
            return self.now()
        # The server's own clock counts from its start-up and says nothing about a trace's.
        self._now_s = max(self._now_s, told_s) if self._is_told else told_s
        self._is_told = True
        return self._now_s

    def now(self) -> float:
        """Returns the present time, in seconds."""
        if not self._is_told:
            self._now_s = max(self._now_s, time.monotonic())
        return self._now_s
