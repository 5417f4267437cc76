"""Queue weights from how much each queue earns (2605.18825; exact chain as in UniCache's algorithm 2).

E_q = decayed hit tokens of the queue / blocks it holds; r = (E_q / mean E)^(1/T), clipped to mean +- 2 standard deviations over
the queues, blended into alpha by 0.1; alpha in [0.1, 3]; every 10 requests. T = 0.5 is our choice (0.2 there; less steady).
"""

import math
from collections.abc import Sequence

import numpy as np

from engine.prefix.blocks import Queue

RATE, DECAY, EVERY_REQUESTS = 0.1, 0.99, 10
LEAST, MOST = 0.1, 3.0
EARNERS = (Queue.STRUCTURAL, Queue.CHAT, Queue.AGENT)


class QueueWeights:
    """One weight a queue, all 1 at first; EVICT_FIRST has none, since it is drained before any other."""

    def __init__(self, temperature: float, learns: bool) -> None:
        self.values = [1.0] * len(Queue)
        self.logs = [0.0] * len(Queue)
        self._temperature, self._learns = temperature, learns
        self._hits = np.zeros(len(Queue))

    def see(self, queues: np.ndarray) -> None:
        """Counts hits on blocks of queues uint8 [n]."""
        if len(queues) and self._learns:
            self._hits += np.bincount(queues, minlength=len(Queue))

    def update(self, num_held: Sequence[int]) -> None:
        """Moves the weights: `num_held` blocks a queue."""
        if not self._learns:
            return
        self._hits *= DECAY
        queues = [queue for queue in EARNERS if num_held[queue] > 0]
        earned = np.array([self._hits[queue] / num_held[queue] for queue in queues])
        if len(queues) < 2 or not earned.any():
            return
        ratios = (earned / earned.mean()) ** (1.0 / self._temperature)
        spread = 2.0 * ratios.std()
        ratios = np.clip(ratios, ratios.mean() - spread, ratios.mean() + spread)
        for queue, ratio in zip(queues, ratios.tolist(), strict=True):
            self.values[queue] = min(max(self.values[queue] + RATE * (ratio - self.values[queue]), LEAST), MOST)
        self.logs = [math.log(value) for value in self.values]
