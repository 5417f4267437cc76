"""Means over several sets of samples, each set of equal weight, with the errors that come from the samples."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

DRAWS = 4000


class Paired(NamedTuple):
    """A mean difference with its 95 % percentile bootstrap interval (samples drawn anew within each set, seeded)."""

    mean: float
    low: float
    high: float


def pooled_mean(sets: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the mean of the sets' means, [...] of arrays [n, ...]."""
    return np.mean([values.mean(axis=0) for values in sets], axis=0)


def pooled_error(sets: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the standard error of `pooled_mean`; a set of a single sample adds nothing to it."""
    squares = [values.var(axis=0, ddof=1) / len(values) if len(values) > 1 else np.zeros(values.shape[1:]) for values in sets]
    return np.sqrt(np.sum(squares, axis=0)) / len(sets)


def paired(differences: Sequence[np.ndarray], seed: int = 0) -> Paired:
    """Returns the pooled mean of differences, one array [n] for each set, with its interval."""
    rng = np.random.default_rng(seed)
    drawn = np.mean([values[rng.integers(len(values), size=(DRAWS, len(values)))].mean(axis=1) for values in differences], axis=0)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Paired(float(pooled_mean(differences)), float(low), float(high))
