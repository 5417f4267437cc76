"""Differences between two methods on the same samples, with paired 95 % bootstrap intervals."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.bench.configs import FULL, PAPER_RULE, PAPER_RULES, Config
from engine.bench.intervals import KL_FLOOR, Interval, interval, ratio_of_means
from engine.bench.records import Columns, SampleRecord

METRICS = ("kl_to_full", "gold_nll", "rouge_l", "f1", "exact_match", "ttft_s")
# Ours at a small ratio against the paper's rule at a larger one: is the same quality had for fewer tokens?
SMALL_RATIOS, PAPER_RATIO = (0.05, 0.1), 0.2


class Pair(NamedTuple):
    """A method and what it is compared with; `across` where their ratios differ."""

    method: Config
    versus: Config
    across: bool = False


def pairs(configs: Sequence[Config]) -> Iterator[Pair]:
    """Yields what is compared.

    Every method with full prefill; the papers' rules and ours with every other method at the same ratio or without one;
    ours at a small ratio with the paper's rule at a larger one.
    """
    full = Config(FULL, None)
    others = [config for config in configs if config.method != FULL]
    yield from (Pair(config, full) for config in others)
    for config in others:
        if config.is_ours or config.method in PAPER_RULES:
            yield from (Pair(config, o) for o in others if o.method != config.method and o.ratio in (config.ratio, None))
    paper = Config(PAPER_RULE, PAPER_RATIO)
    if paper in others:
        yield from (Pair(config, paper, True) for config in others if config.is_ours and config.ratio in SMALL_RATIOS)


def compare_pairs(records: Sequence[SampleRecord], configs: Sequence[Config]) -> list[dict[str, object]]:
    """Returns the comparisons of all pairs: method minus versus, or method over versus for metrics that end in _ratio.

    A metric that no sample has for both is left out.
    """
    columns = Columns(records)
    found = []
    for pair in pairs(configs):
        for metric, value, num in _compared(columns, pair):
            if value is not None:
                names = {"method": pair.method.method, "ratio": pair.method.ratio}
                versus = {"versus": pair.versus.method, "versus_ratio": pair.versus.ratio}
                found.append({**names, **versus, "metric": metric, **value.named(), "n": num})
    return found


def _compared(columns: Columns, pair: Pair) -> Iterator[tuple[str, Interval | None, int]]:
    """Yields metric, value and number of samples of one pair."""

    def both(metric: str) -> tuple[np.ndarray, np.ndarray]:
        return columns.of(pair.method.label, metric), columns.of(pair.versus.label, metric)

    for metric in METRICS:
        own, other = both(metric)
        yield metric, interval(own - other), int(np.isfinite(own - other).sum())
    own, other = both("ttft_s")
    yield "ttft_ratio", interval(own / other), len(own)
    if pair.across:
        own, other = both("kl_to_full")
        yield "kl_ratio", ratio_of_means(own, other, KL_FLOOR), int(np.isfinite(own - other).sum())
