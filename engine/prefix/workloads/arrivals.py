"""When sessions start: Poisson, at a fixed pace, or at recorded times."""

from collections.abc import Callable, Iterator

import numpy as np

from engine.errors import BadRequest

# Makes the times in seconds, without end and not decreasing, from a generator of random numbers.
Arrivals = Callable[[np.random.Generator], Iterator[float]]


def poisson(mean_gap_s: float) -> Arrivals:
    """Returns arrivals with exponential gaps."""
    _check(mean_gap_s)

    def times(rng: np.random.Generator) -> Iterator[float]:
        now_s = 0.0
        while True:
            now_s += rng.exponential(mean_gap_s)
            yield now_s

    return times


def fixed(gap_s: float) -> Arrivals:
    """Returns arrivals at one pace, as the paper's 0.02 to 0.08 s."""
    _check(gap_s)

    def times(rng: np.random.Generator) -> Iterator[float]:
        number = 0
        while True:
            yield number * gap_s
            number += 1

    return times


def recorded(time_s: np.ndarray) -> Arrivals:
    """Returns arrivals at recorded times float64 [n], from the start again behind the last one."""
    if not len(time_s):
        raise BadRequest("There are no recorded arrivals; choose a log that holds some.")
    span_s = float(time_s[-1] - time_s[0]) + max(float(np.diff(time_s).mean()) if len(time_s) > 1 else 1.0, 1e-3)

    def times(rng: np.random.Generator) -> Iterator[float]:
        turn = 0
        while True:
            yield from (time_s - time_s[0] + turn * span_s).tolist()
            turn += 1

    return times


def _check(gap_s: float) -> None:
    if not (np.isfinite(gap_s) and gap_s > 0):
        raise BadRequest(f"The gap between arrivals is {gap_s}; it must be a positive number of seconds.")
