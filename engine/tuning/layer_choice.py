"""Which layers to call critical, from what was measured at each: recall of the answer first, KL among equals.

On small models recall is a weak guide, so layers whose recall ties with the best within two standard errors of the paired
difference (about 95 %) are told apart by KL to full prefill.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from engine.errors import BadRequest
from engine.tuning.pooled import pooled_error, pooled_mean

# The second paper reads three layers (arXiv 2606.05875, 3.2.3).
LEAST = 3
NUM_ERRORS = 2.0


class Candidates(NamedTuple):
    """Layers by falling recall: those that tie with the best one, and the next ones where fewer than three do."""

    tied: tuple[int, ...]
    others: tuple[int, ...]

    def chosen(self, kl: Mapping[int, float]) -> tuple[int, ...]:
        """Returns the layers, best first: those that tie by mean KL to full prefill, then the others by it."""
        return (*sorted(self.tied, key=kl.__getitem__), *sorted(self.others, key=kl.__getitem__))


def candidate_layers(recall: Sequence[np.ndarray], layers: Sequence[int]) -> Candidates:
    """Returns the layers that may be chosen.

    Args:
        recall: of each set [n, len(layers)].
    """
    mean = pooled_mean(recall)
    best = int(mean.argmax())
    gaps = [values[:, best, None] - values for values in recall]
    is_tied = pooled_mean(gaps) <= NUM_ERRORS * pooled_error(gaps)
    order = [int(i) for i in np.argsort(-mean, kind="stable")]
    tied = tuple(layers[i] for i in order if is_tied[i])
    rest = tuple(layers[i] for i in order if not is_tied[i])
    return Candidates(tied, rest[: max(0, LEAST - len(tied))])


def measured_layers(rule: str, candidates: Candidates, layers: Sequence[int]) -> tuple[int, ...]:
    """Returns the layers whose KL is measured, ascending: "all", "tied" (the candidates) or "every:K" and the candidates.

    Raises BadRequest.
    """
    step = kl_step(rule)
    chosen = {*candidates.tied, *candidates.others}
    return tuple(sorted(chosen | set(layers[step - 1 :: step] if step else ())))


def kl_step(rule: str) -> int:
    """Returns the step of "every:K", 1 for "all" and 0 for "tied". Raises BadRequest."""
    if rule in ("all", "tied"):
        return int(rule == "all")
    kind, _, step = rule.partition(":")
    if kind == "every" and step.isascii() and step.isdigit() and int(step) > 0:
        return int(step)
    raise BadRequest(f"--kl is {rule!r}; it must be all, tied or every:K with a whole number K, such as every:2.")
