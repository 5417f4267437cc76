"""Ages in 27 buckets that grow by half: [0, 0.25 s), then 0.25 s * 1.5^k up to 9,470 s."""

import math

import numpy as np

NUM_BUCKETS, FIRST_S, GROWTH = 27, 0.25, 1.5
LO = np.concatenate([[0.0], FIRST_S * GROWTH ** np.arange(NUM_BUCKETS - 1)])
HI = np.append(LO[1:], LO[-1] * GROWTH)
WIDTH = HI - LO
TOP_S = float(HI[-1])
_LOG_GROWTH = math.log(GROWTH)
# Bucket mid-points are evenly spaced in ln(age); the first bucket's is put one step before the second's.
_LOG_MID_0 = math.log(FIRST_S / math.sqrt(GROWTH))


def bucket(age_s: float) -> int:
    """Returns the bucket of an age, the last one for any beyond."""
    if age_s < FIRST_S:
        return 0
    return min(NUM_BUCKETS - 1, 1 + int(math.log(age_s / FIRST_S) / _LOG_GROWTH + 1e-12))


def place(age_s: float) -> float:
    """Returns an age on the scale of the buckets' mid-points, 0 to 26 and beyond."""
    return max((math.log(age_s) - _LOG_MID_0) / _LOG_GROWTH, 0.0) if age_s > 0.0 else 0.0


def overlaps(start_s: np.ndarray, stop_s: np.ndarray) -> np.ndarray:
    """Returns seconds float64 [n, 27] that intervals of age [n] spend in each bucket."""
    return np.clip(np.minimum(stop_s[:, None], HI) - np.maximum(start_s[:, None], LO), 0.0, None)
