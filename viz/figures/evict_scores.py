"""Hit rates of cache runs in the unit a picture counts in, and how much of the way from LRU to the limit a policy goes."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from engine.cache_types import CacheRun
from viz import theme

Unit = Literal["tokens", "blocks"]
FLOOR, LIMIT = "lru", "min"


class Spread(NamedTuple):
    """A mean over seeds with its lowest and highest."""

    mean: float
    lo: float
    hi: float
    n: int


def hit_rate(run: CacheRun, unit: Unit, start: int | None = None) -> float:
    """Returns the share of looked-up tokens or blocks that were cached, from a request on; the second half without one."""
    score = run.second_half if start is None else run.score(start)
    return score.hit_tokens if unit == "tokens" else score.hit_blocks


def gap_closed(run: CacheRun, floor: CacheRun | None) -> float | None:
    """Returns (run - LRU) / (MIN - LRU) in block hits of the second half; None without LRU, MIN, or room between them."""
    if floor is None or run.limit_hit_blocks is None:
        return None
    half = run.num_requests // 2
    hits = [int(values[half:].sum()) for values in (run.requests.hit_blocks, floor.requests.hit_blocks, run.limit_hit_blocks)]
    return (hits[0] - hits[1]) / (hits[2] - hits[1]) if hits[2] > hits[1] else None


def by_policy(runs: Iterable[CacheRun]) -> dict[str, tuple[CacheRun, ...]]:
    """Returns the runs of each policy, lowest seed first, policies in reading order."""
    known = list(runs)
    names = theme.policy_order({run.policy for run in known})
    return {name: tuple(sorted((run for run in known if run.policy == name), key=lambda run: run.seed)) for name in names}


def floor_of(run: CacheRun, runs: Iterable[CacheRun]) -> CacheRun | None:
    """Returns LRU's run with the seed of another."""
    return next((other for other in runs if other.policy == FLOOR and other.seed == run.seed), None)


def spread(values: Sequence[float]) -> Spread:
    """Returns mean and range of at least one value."""
    return Spread(float(np.mean(values)), float(min(values)), float(max(values)), len(values))


def mean_gap(runs: Sequence[CacheRun], everyone: Sequence[CacheRun]) -> float | None:
    """Returns the mean share of the gap that a policy's runs close, None where it is not defined for each seed."""
    gaps = [gap_closed(run, floor_of(run, everyone)) for run in runs]
    known = [gap for gap in gaps if gap is not None]
    return float(np.mean(known)) if known and len(known) == len(gaps) else None


def points(difference: float) -> str:
    """Returns a difference of two rates in words: '+9.0 points'."""
    value = round(100 * difference, 1)
    return "±0.0 points" if value == 0 else f"{value:+.1f} point{'' if abs(value) == 1 else 's'}".replace("-", "−")


def rate_words(rate: float) -> str:
    """Returns a rate with one decimal: '25.4 %'."""
    return f"{100 * rate:.1f} %"
