"""Time between turns as a log-normal, fitted by maximum likelihood on a window of gaps (2605.18825, appendix B).

mu and sigma are mean and standard deviation of ln(gap) over the last 200 gaps, blended by an exponential moving average of 0.1
at every gap once there are 20; gaps below 0.1 s or above an hour are dropped (bounds of llm-d's prototype; window and least
number are our choices).
"""

import math
from collections import deque

WINDOW, LEAST_SAMPLES, RATE = 200, 20, 0.1
LEAST_GAP_S, MOST_GAP_S = 0.1, 3600.0
LEAST_SIGMA = 0.05
_SQRT2 = math.sqrt(2.0)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class LogNormalGaps:
    """Running fit of ln(gap) ~ N(mu, sigma)."""

    def __init__(self, mu: float, sigma: float, learns: bool) -> None:
        self.mu, self.sigma = mu, sigma
        self._learns = learns
        self._window: deque[float] = deque()
        self._sum = self._squares = 0.0

    def add(self, gap_s: float) -> None:
        """Takes a gap in."""
        if not self._learns or not LEAST_GAP_S <= gap_s <= MOST_GAP_S:
            return
        value = math.log(gap_s)
        self._window.append(value)
        self._sum += value
        self._squares += value * value
        if len(self._window) > WINDOW:
            old = self._window.popleft()
            self._sum -= old
            self._squares -= old * old
        num = len(self._window)
        if num >= LEAST_SAMPLES:
            mean = self._sum / num
            deviation = math.sqrt(max(self._squares / num - mean * mean, 0.0))
            self.mu += RATE * (mean - self.mu)
            self.sigma = max(self.sigma + RATE * (deviation - self.sigma), LEAST_SIGMA)

    def log_survival(self, idle_s: float) -> float:
        """Returns ln P(gap > idle_s)."""
        return log_normal_tail((math.log(idle_s) - self.mu) / self.sigma)


def log_normal_tail(z: float) -> float:
    """Returns ln(1 - Phi(z)), by its asymptotic series where erfc would lose it."""
    if z < 25.0:
        return math.log(0.5 * math.erfc(z / _SQRT2))
    inverse = 1.0 / (z * z)
    return -0.5 * z * z - math.log(z) - _HALF_LOG_2PI + math.log1p(-inverse + 3.0 * inverse * inverse)
