"""What a prefill costs in seconds, as a table of one model on one machine: for modelled times to first token."""

from dataclasses import dataclass

import numpy as np

from engine.errors import BadRequest


@dataclass(frozen=True, slots=True)
class PrefillCost:
    """f(x) = linear x + quadratic x^2 seconds for a prompt of x tokens.

    Args:
        source: where the numbers come from, with model and machine.
    """

    name: str
    linear_s: float
    quadratic_s: float
    source: str

    def seconds(self, num_tokens: np.ndarray) -> np.ndarray:
        """Returns f of prompt lengths."""
        x = np.asarray(num_tokens, np.float64)
        return self.linear_s * x + self.quadratic_s * x * x

    def marginal_s(self, start: np.ndarray, num_tokens: int) -> np.ndarray:
        """Returns what `num_tokens` more cost behind `start` tokens."""
        return self.seconds(np.asarray(start) + num_tokens) - self.seconds(start)

    def ttft_s(self, prompt: np.ndarray, hit: np.ndarray) -> np.ndarray:
        """Returns f(prompt) - f(hit): the prefill that is left; no queueing."""
        return self.seconds(prompt) - self.seconds(hit)

    @classmethod
    def fitted(cls, name: str, num_tokens: np.ndarray, seconds: np.ndarray, source: str) -> "PrefillCost":
        """Returns the least-squares fit of measured prefills, relative errors weighted alike. Raises BadRequest under two lengths.

        Both coefficients are at least 0: where noise would make attention or the linear layers free, the other one is fitted alone.
        """
        x, y = np.asarray(num_tokens, np.float64), np.asarray(seconds, np.float64)
        if len(np.unique(x)) < 2 or (y <= 0).any():
            raise BadRequest("A prefill cost needs positive times of at least two prompt lengths.")
        parts = np.stack([x, x * x], 1) / y[:, None]
        found, *_ = np.linalg.lstsq(parts, np.ones_like(y), rcond=None)
        if (found < 0).any():
            kept = parts[:, int(found.argmax())]
            found = np.where(found == found.max(), kept.sum() / (kept @ kept), 0.0)
        return cls(name, float(found[0]), float(found[1]), source)


PUBLISHED_8B = PrefillCost(
    "8b-a100",
    1.03e-4,
    1.7e-9,
    "computed: an 8B model on an A100 at half its peak, linear layers and attention; no queueing",
)
