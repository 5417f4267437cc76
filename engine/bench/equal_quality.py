"""Time to first token of one method over a rival's, where both are as close to full prefill."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.bench.configs import FULL, PAPER_RULES, Config
from engine.bench.intervals import KL_FLOOR, resampled
from engine.bench.records import Columns, SampleRecord


class Crossing(NamedTuple):
    """Where a curve first reaches a KL; not a number where it does not. `at_start`: its first point already does."""

    value: np.ndarray
    at_start: np.ndarray


def first_crossing(kl: np.ndarray, values: np.ndarray, goal: np.ndarray) -> Crossing:
    """Returns the values [...] at which curves first come down to a KL.

    Between two measured ratios the values are linear in the ratio, as is log KL. A curve that starts below gives its first value.

    Args:
        kl: [R, ...] at ascending ratios. values: [R, ...]. goal: [...].
    """
    logs, wanted = np.log(np.maximum(kl, KL_FLOOR)), np.log(np.maximum(goal, KL_FLOOR))
    at_start = logs[0] <= wanted
    found = np.where(at_start, values[0], np.nan)
    for i in range(len(kl) - 1):
        crosses = np.isnan(found) & (logs[i] > wanted) & (logs[i + 1] <= wanted)
        # Only where it crosses is there a slope to divide by.
        share = (logs[i] - wanted) / np.where(crosses, logs[i] - logs[i + 1], 1.0)
        found = np.where(crosses, values[i] + share * (values[i + 1] - values[i]), found)
    return Crossing(found, at_start)


def equal_quality(records: Sequence[SampleRecord], configs: Sequence[Config]) -> list[dict[str, object]]:
    """Returns the ratio of times for the paper's rule and ours against every rival at each of its ratios.

    A draw of samples in which the method does not get as close takes full prefill's time, which always does.
    """
    columns = Columns(records)
    ratios = {c.method: sorted(o.ratio for o in configs if o.method == c.method and o.ratio is not None) for c in configs}
    found = []
    for method, versus in _pairs(configs):
        curve = [Config(method, ratio) for ratio in ratios[method]]
        found += [_entry(columns, curve, Config(versus, ratio)) for ratio in ratios[versus]]
    return [entry for entry in found if entry is not None]


def _pairs(configs: Sequence[Config]) -> Iterator[tuple[str, str]]:
    """Yields method and rival: the paper's rule is a rival of ours, not the other way round."""
    with_ratio = {config.method: config.is_ours for config in configs if config.ratio is not None}
    for method, is_ours in with_ratio.items():
        if is_ours or method in PAPER_RULES:
            yield from ((method, versus) for versus, theirs in with_ratio.items() if versus != method and not theirs)


def _entry(columns: Columns, curve: Sequence[Config], rival: Config) -> dict[str, object] | None:
    kl = np.stack([columns.of(config.label, "kl_to_full") for config in curve])
    rival_kl = columns.of(rival.label, "kl_to_full")
    known = np.isfinite(kl).all(axis=0) & np.isfinite(rival_kl)
    if not known.any():
        return None
    ttft = np.stack([columns.of(config.label, "ttft_s") for config in curve])[:, known]
    rival_ttft, full_ttft = columns.of(rival.label, "ttft_s")[known], columns.of(FULL, "ttft_s")[known]
    kl, rival_kl = kl[:, known], rival_kl[known]
    ratios = np.array([config.ratio for config in curve])
    goal = rival_kl.mean()
    at = first_crossing(kl.mean(axis=1), ratios, goal)

    def time_ratio(picks: np.ndarray, axis: int) -> np.ndarray:
        own = first_crossing(kl[:, picks].mean(axis), ttft[:, picks].mean(axis), rival_kl[picks].mean(axis)).value
        return np.where(np.isnan(own), full_ttft[picks].mean(axis), own) / rival_ttft[picks].mean(axis)

    reached = bool(np.isfinite(at.value))
    entry = {
        "method": curve[0].method,
        "versus": rival.method,
        "versus_ratio": rival.ratio,
        "kl": float(goal),
        "ratio": float(at.value) if reached else None,
        "ttft_ratio": resampled(time_ratio, int(known.sum())).named() if reached else None,
        "n": int(known.sum()),
        "reached": reached,
    }
    return entry | {"bound": "at most"} if at.at_start else entry
