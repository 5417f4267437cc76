"""Token-type weights by exponential moving average (2605.18825, algorithms 1 to 3).

target = 1 + 5 r_miss + 2 r_reuse; w <- (1 - eta) w + eta target; w in [0.1, 5]. r_miss: evicted blocks of the type asked for
again over evicted ones; r_reuse: hits over look-ups of the type. Counts decay by 0.99 an update. Our choices: an update every
200 evictions, eta = 0.1.
"""

import math

import numpy as np

from engine.prefix.blocks import TokenType

NUM_TYPES = len(TokenType)
MISS_GAIN, REUSE_GAIN, DECAY = 5.0, 2.0, 0.99
RATE, EVERY_EVICTIONS = 0.1, 200
LEAST, MOST = 0.1, 5.0


class TokenWeights:
    """One weight a token type, all 1 at first."""

    def __init__(self, learns: bool) -> None:
        self.values = [1.0] * NUM_TYPES
        self.logs = [0.0] * NUM_TYPES
        self._learns = learns
        self._lookups, self._hits, self._missed, self._evicted = (np.zeros(NUM_TYPES) for _ in range(4))
        self._num_new = 0

    def see(self, kinds: np.ndarray, num_hits: int, missed: np.ndarray) -> None:
        """Counts a prompt's look-ups: types uint8 [n], hits first, and the types of those evicted a while ago."""
        if self._learns:
            self._lookups += np.bincount(kinds, minlength=NUM_TYPES)
            self._hits += np.bincount(kinds[:num_hits], minlength=NUM_TYPES)
            if len(missed):
                self._missed += np.bincount(missed, minlength=NUM_TYPES)

    def evict(self, kinds: np.ndarray) -> None:
        """Counts evicted blocks of types uint8 [n]."""
        if self._learns:
            self._evicted += np.bincount(kinds, minlength=NUM_TYPES)
            self._num_new += len(kinds)

    def update(self) -> None:
        """Moves the weights once enough has been evicted since the last time."""
        if not self._learns or self._num_new < EVERY_EVICTIONS:
            return
        self._num_new = 0
        for kind in range(NUM_TYPES):
            miss = self._missed[kind] / self._evicted[kind] if self._evicted[kind] else 0.0
            reuse = self._hits[kind] / self._lookups[kind] if self._lookups[kind] else 0.0
            target = 1.0 + MISS_GAIN * min(miss, 1.0) + REUSE_GAIN * reuse
            self.values[kind] = min(max((1.0 - RATE) * self.values[kind] + RATE * target, LEAST), MOST)
        self.logs = [math.log(value) for value in self.values]
        for counts in (self._lookups, self._hits, self._missed, self._evicted):
            counts *= DECAY
