"""What the policy did in a server, as plain values for its state by HTTP. Knows nothing of SGLang."""

import logging
from typing import Any

import numpy as np

from engine.prefix.blocks import Queue, TokenType
from engine.prefix.tree import Lease
from engine.serving.sglang.mirror import Mirror

logger = logging.getLogger(__name__)
_COMPLAINTS_KEPT = 5


class PolicyStats:
    """Counts since the server started; what the cache holds and the policy has learned at the moment it is asked.

    `unplanned`: pages that SGLang evicted without the policy's choice. `passed_over`: choices that SGLang would not let go of.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.unplanned = self.passed_over = 0
        self._num_requests = self._prompt_blocks = self._hit_blocks = 0
        self._complaints: list[str] = []

    def served(self, lease: Lease) -> None:
        """Counts a request that has ended."""
        self._num_requests += 1
        self._prompt_blocks += lease.request.num_prompt
        self._hit_blocks += lease.num_hits

    def complain(self, sentence: str) -> None:
        """Keeps why something that a request said was not used."""
        logger.warning("%s", sentence)
        self._complaints = [*self._complaints, sentence][-_COMPLAINTS_KEPT:]

    def values(self) -> dict[str, Any]:
        """Returns everything, as JSON holds it."""
        mirror, c = self._mirror, self._mirror.columns
        queues, kinds = np.bincount(c.queue[c.cached], minlength=len(Queue)), np.bincount(c.kind[c.cached], minlength=len(TokenType))
        return {
            "policy": mirror.policy.name,
            "params": mirror.policy.params(),
            "page_tokens": mirror.block_tokens,
            "capacity_pages": mirror.capacity,
            "cached_pages": mirror.tree.size,
            "evicted_pages": mirror.tree.num_evicted,
            "unplanned_pages": self.unplanned,
            "passed_over": self.passed_over,
            "num_requests": self._num_requests,
            "prompt_pages": self._prompt_blocks,
            "hit_pages": self._hit_blocks,
            "queues": {queue.name.lower(): int(queues[queue]) for queue in Queue},
            "kinds": {kind.name.lower(): int(kinds[kind]) for kind in TokenType},
            "weights": {name: float(value) for name, value in mirror.tree.ranker.weights().items()},
            "complaints": list(self._complaints),
        }
