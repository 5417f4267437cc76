"""Policies with one part changed, held against themselves whole: what each part is worth on a load.

Two sets. SAECache as published against fixed parameters, one learned part at a time (2605.18825, ablation), and SAE-G without one part
at a time. A difference is by blocks of the second half, paired by seed; `expected` is the direction in which a part was worth having when
it was chosen ("lower" without it, "higher" with it, None where it hardly mattered or differed from load to load).
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from engine.bench.intervals import interval
from engine.bench.report import print_table
from engine.cache_types import CacheRun
from engine.prefix.lab import ReplayLab, gap_closed
from engine.prefix.policies import POLICIES

Params = Mapping[str, bool | float | int | str]
BASELINE = "lru"
SESSION_FEATURES = "agent,wait,turn,prediction,template,type,pace,length"


class Ablation(NamedTuple):
    """A changed policy: what is changed in words, the policy it is held against, and what it is."""

    change: str
    base: str
    policy: str
    params: Params
    expected: Literal["lower", "higher"] | None = None


ABLATIONS = (
    Ablation("token-type weights learned", "saecache_fixed", "saecache_types", {}, "higher"),
    Ablation("gaps learned", "saecache_fixed", "saecache_timing", {}, "higher"),
    Ablation("position decay learned", "saecache_fixed", "saecache_position", {}, "higher"),
    Ablation("queue weights learned", "saecache_fixed", "saecache_queues", {}, "higher"),
    Ablation("everything learned", "saecache_fixed", "saecache", {}, "higher"),
    Ablation("gaps of evicted blocks too", "saecache", "saecache_ghost", {}, "higher"),
    Ablation("no survival, T = 1, gaps of evicted blocks too", "saecache", "saecache_flat", {}, "higher"),
    Ablation("answers evicted first", "saecache", "saecache", {"answers_stay": False}),
    Ablation("instant hazard, no look-ahead", "sae_g", "sae_g", {"look_ahead": "hazard"}, "lower"),
    Ablation("unlimited horizon", "sae_g", "sae_g", {"look_ahead": "unlimited"}, "lower"),
    Ablation("oldest end of a class only", "sae_g", "sae_g", {"two_ends": False}, "lower"),
    Ablation("one class for session blocks", "sae_g", "sae_g", {"without": SESSION_FEATURES}, "lower"),
    Ablation("no predictor", "sae_g", "sae_g", {"without": "prediction"}, "lower"),
    Ablation("no ghosts", "sae_g", "sae_g", {"ghost_ratio": 0.0}),
    Ablation("ghosts as many as blocks", "sae_g", "sae_g", {"ghost_ratio": 1.0}),
    Ablation("no token type", "sae_g", "sae_g", {"without": "type"}),
    Ablation("no tool wait", "sae_g", "sae_g", {"without": "wait"}),
    Ablation("no shared classes", "sae_g", "sae_g", {"without": "shared"}, "lower"),
    Ablation("no session pace", "sae_g", "sae_g", {"without": "pace"}),
    Ablation("no prompt length", "sae_g", "sae_g", {"without": "length"}),
    Ablation("one block in eight counted", "sae_g", "sae_g", {"sample": 8}),
)


class _Bench:
    """Runs of one workload's seeds at one capacity, each configuration once."""

    def __init__(self, labs: Sequence[ReplayLab], capacity: float) -> None:
        self._labs, self._capacity = labs, capacity
        self._floors = self._run(BASELINE, {})
        self._known: dict[tuple[str, tuple], tuple[np.ndarray, float | None]] = {}

    def measure(self, policy: str, params: Params) -> tuple[np.ndarray, float | None]:
        """Returns block hit rates of the second half float64 [seeds], and the mean gap closed, None where there is none."""
        key = (policy, tuple(params.items()))
        if key not in self._known:
            runs = self._run(policy, params)
            gaps = [gap for run, floor in zip(runs, self._floors, strict=True) if (gap := gap_closed(run, floor)) is not None]
            self._known[key] = np.array([run.second_half.hit_blocks for run in runs]), float(np.mean(gaps)) if gaps else None
        return self._known[key]

    def _run(self, policy: str, params: Params) -> list[CacheRun]:
        return [lab.run(POLICIES.create(policy, **params), lab.capacity(self._capacity)) for lab in self._labs]


def ablation_rows(
    labs: Sequence[ReplayLab],
    predictor: str,
    capacities: Sequence[float],
    quiet: bool = True,
    ablations: Sequence[Ablation] = ABLATIONS,
) -> list[dict[str, Any]]:
    """Returns a row for each ablation and capacity over the seeds of one workload. Raises Cancelled."""
    rows, name = [], labs[0].workload.name
    for capacity in capacities:
        bench = _Bench(labs, capacity)
        for one in ablations:
            if not quiet:
                print(f"{name} at {capacity:g}: {one.policy}, {one.change}", file=sys.stderr)
            (changed, gap), (base, _) = bench.measure(one.policy, one.params), bench.measure(one.base, {})
            difference = interval(changed - base)
            assert difference is not None, "every replay has a hit rate"
            rows.append(
                {
                    "workload": name,
                    "capacity": capacity,
                    "predictor": predictor,
                    "base": one.base,
                    "policy": one.policy,
                    "change": one.change,
                    "params": dict(one.params),
                    "n": len(labs),
                    "difference": difference.named(),
                    "gap_closed": gap,
                    "expected": one.expected,
                }
            )
    return rows


def print_ablations(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints one line an ablation and capacity; nothing without rows."""
    if not rows:
        return
    print_table(
        ("workload", "capacity", "against", "change", "points", "gap closed", "expected"),
        [
            (
                row["workload"],
                f"{row['capacity']:g}",
                row["base"],
                row["change"],
                f"{100 * row['difference']['mean']:+.2f} [{100 * row['difference']['lo']:+.2f}, {100 * row['difference']['hi']:+.2f}]",
                "-" if row["gap_closed"] is None else f"{100 * row['gap_closed']:.0f} %",
                row["expected"] or "-",
            )
            for row in rows
        ],
    )
