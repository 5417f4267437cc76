"""Results of the benchmarks `evict` and `live`, and cards of session predictors, as evidence: only what rules read."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from engine.claims.claim import Basis

RESULTS_DIR = Path(__file__).resolve().parents[2] / "assets" / "results"
PREDICTORS_DIR = Path(__file__).resolve().parents[2] / "assets" / "predictors"
EVICT_FORMAT, LIVE_FORMAT, CARD_FORMAT = "fusescope-evictions/2", "fusescope-live/1", "fusescope-predictor/2"


class Mean(msgspec.Struct, frozen=True):
    """A mean with the ends of its 95 % interval."""

    mean: float
    lo: float
    hi: float


class EvictionRow(msgspec.Struct, frozen=True):
    """One policy at one capacity of one workload under one predictor.

    Args:
        by_seed: "hit_tokens_second_half" and "modelled_ttft_s", a value a seed, in the order of all other rows.
        gap_closed: (policy - LRU) / (MIN - LRU), None where there is no gap.
    """

    workload: str
    capacity: float
    policy: str
    predictor: str
    n: int
    by_seed: dict[str, tuple[float, ...]]
    gap_closed: Mean | None = None


class ScalingRow(msgspec.Struct, frozen=True):
    """Microseconds an eviction of a policy in a cache of so many blocks."""

    policy: str
    capacity_blocks: int
    us_per_eviction: float


class EvictionSet(msgspec.Struct, frozen=True):
    """One file of the benchmark `evict`."""

    rows: tuple[EvictionRow, ...]
    command: str
    created: str
    commit: str
    cost: str
    scaling: tuple[ScalingRow, ...] = ()

    def basis(self, data: str, n: int, model: str = "no model: simulated") -> Basis:
        """Returns where a figure of this file comes from."""
        return Basis(data, n, model, "hits do not depend on the machine", self.created[:10], self.command)


class LiveRow(msgspec.Struct, frozen=True):
    """One policy's requests; `ttft_to_lru` is the ratio of means, paired by request, `from_hits` the same with requests for which both
    found as much taken as equal."""

    policy: str
    n: int
    ttft_to_lru: Mean
    hit_tokens: float
    from_hits: Mean | None = None
    num_hits_differ: int = 0


class LiveSource(msgspec.Struct, frozen=True):
    """Where a live run was measured."""

    model: str
    device: str
    num_threads: int
    created: str


class LiveSet(msgspec.Struct, frozen=True):
    """One file of the benchmark `live`."""

    rows: tuple[LiveRow, ...]
    command: str
    provenance: LiveSource
    predictor: str = ""


class PredictorFigures(msgspec.Struct, frozen=True):
    """What a session predictor's card says it is worth on held-out conversations."""

    model: str
    data: str
    num_samples: tuple[int, int, int]
    accuracy: float
    f1: float
    mcc: float
    baseline_accuracy: float
    predictions_per_s: float
    created: str


class _Head(msgspec.Struct):
    format: str = ""


def eviction_sets(folder: Path = RESULTS_DIR) -> tuple[EvictionSet, ...]:
    """Returns all results of `evict` in a folder. Raises msgspec.ValidationError on a bad file."""
    return tuple(msgspec.json.decode(data, type=EvictionSet) for data in _of_format(folder, EVICT_FORMAT))


def live_sets(folder: Path = RESULTS_DIR) -> tuple[LiveSet, ...]:
    """Returns all results of `live` in a folder. Raises msgspec.ValidationError on a bad file."""
    return tuple(msgspec.json.decode(data, type=LiveSet) for data in _of_format(folder, LIVE_FORMAT))


def predictor_figures(folder: Path = PREDICTORS_DIR) -> tuple[PredictorFigures, ...]:
    """Returns the cards of trained session predictors in a folder. Raises msgspec.ValidationError on a bad file."""
    return tuple(msgspec.json.decode(data, type=PredictorFigures) for data in _of_format(folder, CARD_FORMAT))


def _of_format(folder: Path, name: str) -> Iterator[bytes]:
    """Yields the files of a folder that say they are of a format, in order of name."""
    for path in sorted(folder.glob("*.json")):
        data = path.read_bytes()
        if msgspec.json.decode(data, type=_Head).format == name:
            yield data
