"""Position decay of templated prompts: p = 1 - (offset / o_max)^gamma, gamma learned (2605.18825, structural queue).

The paper learns gamma from how hit rate falls with position but gives no formula. Ours: offsets in 10 bands with look-ups n_j and
hit rate r_j; of a log grid from 1/8 to 8 the gamma that minimises sum n_j (r_j / r_0 - 1 + x_j^gamma)^2, blended by 0.1.
o_max is the 99th percentile of recent prompts' lengths, not the largest ever seen, which one long prompt would set for good.
"""

from collections import deque

import numpy as np

NUM_BANDS, SCORE_BANDS = 10, 16
GRID = tuple(2.0 ** (k / 2) for k in range(-6, 7))
RATE, DECAY, WINDOW = 0.1, 0.99, 500
LEAST, MOST = 0.1, 8.0
LEAST_P = 1e-3
_X = (np.arange(NUM_BANDS) + 0.5) / NUM_BANDS
_CURVES = _X[None, :] ** np.array(GRID)[:, None]


class PositionDecay:
    """Learned gamma and o_max; a block's score depends on its band of 16, so that a band's oldest block is its least."""

    def __init__(self, learns: bool) -> None:
        self.gamma, self.longest = 1.0, 1.0
        self._learns = learns
        self._lengths: deque[int] = deque(maxlen=WINDOW)
        self._lookups, self._hits = np.zeros(NUM_BANDS), np.zeros(NUM_BANDS)
        self._logs = _band_logs(1.0)

    def see(self, num_prompt: int, num_hits: int, is_structural: bool) -> None:
        """Counts a prompt of so many blocks."""
        self._lengths.append(num_prompt)
        if len(self._lengths) == 1:
            self.longest = float(max(num_prompt, 1))
        if is_structural and self._learns:
            bands = np.minimum((np.arange(num_prompt) * (NUM_BANDS / self.longest)).astype(np.int64), NUM_BANDS - 1)
            self._lookups += np.bincount(bands, minlength=NUM_BANDS)
            self._hits += np.bincount(bands[:num_hits], minlength=NUM_BANDS)

    def bands(self, depth: np.ndarray) -> np.ndarray:
        """Returns the score bands int64 [n] of offsets int32 [n] in blocks."""
        return np.minimum((depth * (SCORE_BANDS / self.longest)).astype(np.int64), SCORE_BANDS - 1)

    def log_p(self, band: int) -> float:
        """Returns ln p of a score band."""
        return self._logs[band]

    def update(self) -> None:
        """Moves o_max to the recent prompts and gamma towards the best of the grid."""
        if self._lengths:
            self.longest = max(float(np.percentile(self._lengths, 99.0)), 1.0)
        if self._learns and self._lookups[0] > 0 and self._hits[0] > 0:
            rates = self._hits / np.maximum(self._lookups, 1e-9)
            errors = ((rates / rates[0] - 1.0 + _CURVES) ** 2) @ self._lookups
            self.gamma = min(max(self.gamma + RATE * (GRID[int(errors.argmin())] - self.gamma), LEAST), MOST)
            self._logs = _band_logs(self.gamma)
            self._lookups *= DECAY
            self._hits *= DECAY


def _band_logs(gamma: float) -> list[float]:
    x = (np.arange(SCORE_BANDS) + 0.5) / SCORE_BANDS
    return np.log(np.clip(1.0 - x**gamma, LEAST_P, 1.0)).tolist()
