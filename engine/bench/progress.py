"""What a benchmark says on stderr while it runs: some take half an hour."""

import sys
import time


class Steps:
    """Says of each step what it is, the how manieth of how many, and how long it has taken up to there."""

    def __init__(self, num: int) -> None:
        self._num, self._num_begun, self._since = num, 0, time.perf_counter()

    def begun(self, what: str) -> None:
        """Says what begins."""
        self._num_begun += 1
        print(f"{self._num_begun}/{self._num} {what}, after {clock(time.perf_counter() - self._since)}", file=sys.stderr)


def clock(seconds: float) -> str:
    """Returns a time as people read it from a clock."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
