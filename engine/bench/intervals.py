"""95 % bootstrap intervals over samples: percentile, seeded, so that the same samples give the same interval."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import bootstrap

DRAWS, SEED = 2_000, 0
# Nats; a KL below it is the rounding of float32 log-probabilities, and 0 has no logarithm.
KL_FLOOR = 1e-6


class Interval(NamedTuple):
    """A statistic of all samples and the ends of its interval; both ends are the statistic where nothing varies."""

    value: float
    lo: float
    hi: float

    def named(self, name: str = "mean") -> dict[str, float]:
        """Returns {name, lo, hi}."""
        return {name: self.value, "lo": self.lo, "hi": self.hi}


def interval(values: np.ndarray, statistic: Callable[..., np.ndarray] = np.mean) -> Interval | None:
    """Returns a statistic of values [n] with its interval; values that are not a number are left out, None where none is left.

    Args:
        statistic: takes `axis`, as np.mean and np.median do.
    """
    data = np.asarray(values, dtype=np.float64)
    data = data[np.isfinite(data)]
    if not len(data):
        return None
    return resampled(lambda picks, axis: statistic(data[picks], axis=axis), len(data))


def ratio_of_means(values: np.ndarray, others: np.ndarray, floor: float) -> Interval | None:
    """Returns mean(values) / mean(others) of paired samples [n] with its interval, None without samples that have both.

    Args:
        floor: means below it are taken as it, so that two that are nothing but rounding are equal.
    """
    both = np.isfinite(values) & np.isfinite(others)
    if not both.any():
        return None
    a, b = values[both], others[both]
    return resampled(lambda picks, axis: np.maximum(a[picks].mean(axis), floor) / np.maximum(b[picks].mean(axis), floor), len(a))


def resampled(statistic: Callable[[np.ndarray, int], np.ndarray], num: int) -> Interval:
    """Returns a statistic of sample numbers 0..num-1 with its interval: all that is drawn together stays paired.

    Args:
        statistic: of int picks [..., num] along `axis`, the last.
    """
    every = np.arange(num)
    value = float(statistic(every, -1))
    if num < 2:
        return Interval(value, value, value)
    drawn = bootstrap(
        (every,),
        lambda picks, axis: statistic(picks.astype(np.int64), axis),
        n_resamples=DRAWS,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return Interval(value, float(drawn.confidence_interval.low), float(drawn.confidence_interval.high))
