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
    """Layers by falling recall: those that tie with the best one, the next ones where fewer than three do, and all."""

    tied: tuple[int, ...]
    others: tuple[int, ...]
    ranked: tuple[int, ...]

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
    return Candidates(tied, rest[: max(0, LEAST - len(tied))], (*tied, *rest))


def measured_layers(rule: str, candidates: Candidates, layers: Sequence[int]) -> tuple[int, ...]:
    """Returns the layers whose KL is measured, ascending: those of the rule and the candidates. Raises BadRequest."""
    kind, number = kl_rule(rule)
    more = layers[number - 1 :: number] if kind == "every" else candidates.ranked[:number]
    return tuple(sorted({*candidates.tied, *candidates.others, *more}))


class KlRule(NamedTuple):
    """Which layers KL is measured for beside the candidates: "every" K-th, or the K "best" by recall."""

    kind: str
    number: int


def kl_rule(rule: str) -> KlRule:
    """Returns what "all", "tied", "every:K" or "best:K" says. Raises BadRequest."""
    if rule in ("all", "tied"):
        return KlRule("every", 1) if rule == "all" else KlRule("best", 0)
    kind, _, number = rule.partition(":")
    if kind in ("every", "best") and number.isascii() and number.isdigit() and int(number) > 0:
        return KlRule(kind, int(number))
    raise BadRequest(f"--kl is {rule!r}; it must be all, tied, every:K or best:K with a whole number K, such as every:2.")
