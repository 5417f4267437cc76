"""From an effect and its interval to a verdict. Gains are signed so that more is better for the method.

A claimed gain counts as reproduced where our estimate reaches it and the 95 % interval excludes "no effect", as not
reproduced where the whole interval stays below it, and as undecided in between.
"""

from collections.abc import Iterable
from typing import NamedTuple

from engine.claims.claim import Verdict
from engine.results import Difference, ResultSet, Row, metric_of

POINTS = ("rouge_l", "f1", "exact_match")


class Gain(NamedTuple):
    """An effect and the ends of its 95 % interval, more is better."""

    value: float
    lo: float
    hi: float

    def words(self, metric: str) -> str:
        """Returns '+2.9 points [+1.0, +4.8]' for shares, '+0.120 [...]' for others."""
        factor, form, unit = (100, "+.1f", " points") if metric in POINTS else (1, "+.3f", "")
        text = f"{factor * self.value:{form}}{unit} [{factor * self.lo:{form}}, {factor * self.hi:{form}}]"
        return text.replace("-", "−")


def reaches(gain: Gain, at_least: float, nothing: float = 0.0) -> Verdict:
    """Returns the verdict on a claimed gain."""
    if gain.hi < at_least:
        return "not reproduced"
    return "reproduced" if gain.value >= at_least and gain.lo > nothing else "undecided"


def keeps(gain: Gain, margin: float) -> Verdict:
    """Returns the verdict on 'no worse': reproduced where a loss beyond the margin is excluded, not where a loss is clear."""
    if gain.lo >= -margin:
        return "reproduced"
    return "not reproduced" if gain.hi < 0 and gain.value < -margin else "undecided"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns what holds when several parts must."""
    found = set(verdicts)
    return "not reproduced" if "not reproduced" in found else "undecided" if "undecided" in found else "reproduced"


def gain_of(results: ResultSet, row: Row, versus: str, metric: str) -> Gain | None:
    """Returns by how much a row is better than another method at the same ratio, whichever of the two the file names first."""
    found, sign = results.difference(row, versus, metric), 1
    if found is None:
        found, sign = _reversed(results, row, versus, metric), -1
    if found is None:
        return None
    sign = -sign if metric_of(metric).low_is_better else sign
    low, high = sorted((sign * found.lo, sign * found.hi))
    return Gain(sign * found.mean, low, high)


def _reversed(results: ResultSet, row: Row, versus: str, metric: str) -> Difference | None:
    other = results.row(versus, row.ratio)
    return results.difference(other, row.method, metric) if other else None
