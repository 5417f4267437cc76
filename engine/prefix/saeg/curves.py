"""Hit density by class and idle age: how many hits a block-second of cache is worth if the block is kept for the best while.

G(a) = max_h P(reuse within h | idle a) / E[time held | idle a, given up at reuse or h], the Gittins index of keeping. Hazards are
events over exposure by age, each level of classes leaning on the one above by a Gamma prior of three requests' worth of blocks;
the root leans on a hazard of 1/t, under which the order is LRU.
"""

from typing import Literal, NamedTuple

import numpy as np

from engine.prefix.saeg.buckets import HI, LO, NUM_BUCKETS, WIDTH
from engine.prefix.saeg.classes import NUM_SESSION, SHAPE
from engine.prefix.saeg.records import Records

PRIOR_REQUESTS = 3.0
COLD_HAZARD = 0.5 / (np.sqrt((LO + 0.1) * HI) + 1.0)
LookAhead = Literal["gittins", "unlimited", "hazard"]


class Horizon(NamedTuple):
    """The while for which keeping a block is worth most: its length, the chance of reuse in it, and the density."""

    seconds: float
    chance: float
    density: float


class Level(NamedTuple):
    """Counts of one level of classes: events, exposure float64 [..., 27], blocks and requests begun float64 [...]."""

    events: np.ndarray
    exposure: np.ndarray
    num_blocks: np.ndarray
    num_requests: np.ndarray

    def summed(self, axes: tuple[int, ...]) -> "Level":
        """Returns the level above: counts added up over axes."""
        return Level(*(part.sum(axes) for part in self))

    def hazards(self, parent: np.ndarray) -> np.ndarray:
        """Returns hazards 1/s float64 [..., 27] that lean on those of the level above."""
        per_request = np.divide(self.num_blocks, self.num_requests, out=np.ones_like(self.num_blocks), where=self.num_requests > 0)
        prior = PRIOR_REQUESTS * np.maximum(per_request, 1e-9)[..., None]
        return (self.events + prior) / (self.exposure + prior / parent)


class Curves:
    """Hazards and ln G of classes as of the last refresh; rows of classes are worked out when first asked for.

    Args:
        look_ahead: "gittins"; "unlimited" holds every block to the end of the curve (the rule of LHD); "hazard" ranks by the
            hazard at the moment.
        least_buckets: shortest horizon, in buckets; tames noise.
        unimodal: whether ln G is made to rise to one peak and fall, so that a class's least is at one of its ends.
    """

    def __init__(self, records: Records, look_ahead: LookAhead = "gittins", least_buckets: int = 3, unimodal: bool = True) -> None:
        self._records = records
        self._look_ahead, self._least_buckets, self._unimodal = look_ahead, least_buckets, unimodal
        self._rows: dict[int, list[float]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Takes in what was counted since the last time."""
        r = self._records
        counts = Level(r.events, r.exposure, r.num_blocks, r.num_requests)
        session = Level(*(part[:NUM_SESSION].reshape(*SHAPE, *part.shape[1:]) for part in counts))
        shared = Level(*(part[NUM_SESSION:] for part in counts))
        # Axes of SHAPE: agent, wait, turn, prediction, template, type, pace, length.
        root = counts.summed((0,)).hazards(COLD_HAZARD)
        group = session.summed((3, 4, 5, 6, 7)).hazards(root)
        base = session.summed((6, 7)).hazards(group[:, :, :, None, None, None])
        self._pace = session.summed((7,)).hazards(base[..., None, :])
        self._shared_group = shared.summed((0,)).hazards(root)
        self._counts = counts
        self._rows.clear()
        self._prepare(np.flatnonzero(r.num_requests > 0.0))

    def row(self, number: int) -> list[float]:
        """Returns ln G of a class by age bucket."""
        row = self._rows.get(number)
        if row is None:
            self._prepare(np.array([number]))
            row = self._rows[number]
        return row

    def hazards(self, numbers: np.ndarray) -> np.ndarray:
        """Returns hazards 1/s float64 [n, 27] of classes int64 [n]."""
        parent = np.empty((len(numbers), NUM_BUCKETS))
        is_session = numbers < NUM_SESSION
        above = np.unravel_index(numbers[is_session] // SHAPE[-1], SHAPE[:-1])
        parent[is_session] = self._pace[above]
        parent[~is_session] = self._shared_group
        return Level(*(part[numbers] for part in self._counts)).hazards(parent)

    def horizon(self, number: int, age_bucket: int) -> Horizon:
        """Returns the best while to keep a block of a class and age."""
        chance, held = _ahead(self.hazards(np.array([number])), age_bucket)
        least = min(self._least_buckets - 1, chance.shape[1] - 1)
        best = least + int((chance[0, least:] / held[0, least:]).argmax())
        seconds = float(HI[age_bucket + best] - LO[age_bucket])
        return Horizon(seconds, float(chance[0, best]), float(chance[0, best] / held[0, best]))

    def prior_share(self, number: int) -> float:
        """Returns which share of a class's estimate is prior rather than its own requests."""
        return PRIOR_REQUESTS / (PRIOR_REQUESTS + float(self._counts.num_requests[number]))

    def _prepare(self, numbers: np.ndarray) -> None:
        if not len(numbers):
            return
        logs = np.log(self._densities(self.hazards(numbers)))
        if self._unimodal:
            logs = _unimodal(logs)
        self._rows.update(zip(numbers.tolist(), logs.tolist(), strict=True))

    def _densities(self, hazards: np.ndarray) -> np.ndarray:
        """Returns G in hits per block-second, float64 [n, 27]."""
        if self._look_ahead == "hazard":
            return hazards
        found = np.empty_like(hazards)
        for i in range(NUM_BUCKETS):
            chance, held = _ahead(hazards, i)
            least = -1 if self._look_ahead == "unlimited" else min(self._least_buckets - 1, NUM_BUCKETS - 1 - i)
            found[:, i] = (chance[:, least:] / held[:, least:]).max(1)
        return found


def _ahead(hazards: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns, for a block at the start of bucket i kept to the end of each bucket from i on, the chance of reuse and the expected
    seconds held, both float64 [n, 27 - i]."""
    rates, risks = hazards[:, i:], hazards[:, i:] * WIDTH[i:]
    reached = np.exp(-np.cumsum(risks, 1) + risks)
    reused = reached * -np.expm1(-risks)
    return np.cumsum(reused, 1), np.cumsum(reused / rates, 1)


def _unimodal(values: np.ndarray) -> np.ndarray:
    """Returns the least rows above [n, 27] that rise to their largest value and fall from there."""
    rising = np.maximum.accumulate(values, 1)
    falling = np.maximum.accumulate(values[:, ::-1], 1)[:, ::-1]
    return np.minimum(rising, falling)
