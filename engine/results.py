"""Results of a benchmark as frozen values, looked up by method and ratio. Knows no model, no file and no picture.

A set says what was measured, on what and when; a number without an interval has None for its ends. Differences
and ratios are of the first method against the second, paired by sample.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from engine.types import Provenance


@dataclass(frozen=True, slots=True)
class Metric:
    """A quality metric: what it is called, which way is better, how it is written. `compared`: files hold paired differences."""

    name: str
    label: str
    low_is_better: bool
    form: str
    meaning: str
    compared: bool = True


METRICS = (
    Metric("kl_to_full", "KL to full prefill", True, ".3f", "distance of the next-token distributions from full prefill's, nats"),
    Metric("gold_nll", "Gold NLL", True, ".3f", "how unlikely the gold answer is to the model, nats per token"),
    Metric("rouge_l", "ROUGE-L", False, ".3f", "overlap with the gold answer, 0 to 1"),
    Metric("f1", "F1", False, ".3f", "word overlap with the gold answer, 0 to 1"),
    Metric("exact_match", "Exact match", False, ".2f", "share of answers equal to the gold answer"),
    Metric("answered", "Answers holding the gold", False, ".2f", "share of answers in which the gold answer stands", compared=False),
    Metric("same_answer", "Same answer as full", False, ".2f", "share of answers equal to full prefill's, token for token", compared=False),
)


@dataclass(frozen=True, slots=True)
class Spread:
    """Median over the samples, lowest and highest."""

    median: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """Median with its 95 % bootstrap interval."""

    median: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean with its 95 % bootstrap interval."""

    mean: float
    lo: float
    hi: float


class Measure(NamedTuple):
    """A metric's mean, and the ends of its interval where the file has them."""

    mean: float
    lo: float | None = None
    hi: float | None = None


@dataclass(frozen=True, slots=True)
class KvDistance:
    """Relative L2 distance of the fused K and V to full prefill's."""

    keys: float
    values: float


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one ratio (None where it has none).

    Args:
        N: median number of document tokens; q: of question tokens.
        limit: most that the speed-up could be by the tokens computed; limit_share: share of it that was reached.
        work_limit, work_limit_share: the same by the operations computed: tokens chosen late attend to more keys. None where not counted.
        parts_s: median seconds by what the device was doing.
        context: what the chunks had seen when their caches were computed.
        break_even: requests after which the saved time has paid for the caches, None for never or not known.
    """

    method: str
    ratio: float | None
    n: int
    N: int
    q: int
    ttft_s: Spread
    speedup: MedianInterval
    limit: float | None = None
    probe_share: float | None = None
    limit_share: float | None = None
    work_limit: float | None = None
    work_limit_share: float | None = None
    parts_s: dict[str, float] = field(default_factory=dict)
    rouge_l: float | None = None
    f1: float | None = None
    answered: float | None = None
    exact_match: float | None = None
    gold_nll: float | None = None
    kl_to_full: Interval | None = None
    span_recall: float | None = None
    same_answer: float | None = None
    loaded_mb: float | None = None
    context: str = ""
    rows_share: float | None = None
    kv_distance: KvDistance | None = None
    intervals: dict[str, Interval | None] = field(default_factory=dict)
    break_even: float | None = None

    def measure(self, metric: str) -> Measure | None:
        """Returns a metric of METRICS, None where it was not measured."""
        value = getattr(self, metric)
        if isinstance(value, Interval):
            return Measure(value.mean, value.lo, value.hi)
        if value is None:
            return None
        found = self.intervals.get(metric)
        return Measure(value, found.lo, found.hi) if found else Measure(value)


@dataclass(frozen=True, slots=True)
class Difference:
    """A method minus another on the same samples (for metrics that end in _ratio: the one over the other), 95 % interval."""

    method: str
    ratio: float | None
    versus: str
    versus_ratio: float | None
    metric: str
    mean: float
    lo: float
    hi: float
    n: int


@dataclass(frozen=True, slots=True)
class EqualQuality:
    """Time to first token of a method over that of another where it is as close to full prefill: `kl` is the other's mean KL.

    Args:
        ttft_ratio: below 1 is faster; None where the method never gets there.
        reached: whether the method gets as close at a measured ratio or between two; `ratio` is where.
        bound: "at most" where already the method's lowest ratio is close enough.
    """

    method: str
    versus: str
    versus_ratio: float | None
    kl: float
    ttft_ratio: Interval | None
    n: int
    reached: bool
    ratio: float | None = None
    bound: str | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What computing all chunk caches of one sample costs once, for one chunk context."""

    context: str
    build_s: Spread
    build_tokens_per_s: float | None = None
    disk_mb: float | None = None
    n: int = 0


@dataclass(frozen=True, slots=True)
class ResultSet:
    """One benchmark: one model on one machine over one data set. `name` tells sets apart here and is not of the file."""

    bench: str
    data: str
    n: int
    rows: tuple[Row, ...]
    provenance: Provenance
    repeats: int = 1
    context: str = ""
    seed: int = 0
    max_new_tokens: int = 0
    critical_layers: tuple[int, ...] = ()
    rows_yes_no: tuple[Row, ...] = ()
    comparisons: tuple[Difference, ...] = ()
    latency_at_equal_quality: tuple[EqualQuality, ...] = ()
    costs: tuple[Cost, ...] = ()
    data_report: Any = None
    skipped: int = 0
    command: str = ""
    name: str = ""

    def methods(self) -> tuple[str, ...]:
        """Returns the methods in the order of the file."""
        return tuple(dict.fromkeys(row.method for row in self.rows))

    def ratios(self) -> tuple[float, ...]:
        """Returns all ratios, lowest first."""
        return tuple(sorted({row.ratio for row in self.rows if row.ratio is not None}))

    def row(self, method: str, ratio: float | None = None) -> Row | None:
        """Returns the row of a method at a ratio; a method without ratios has one row whatever is asked."""
        own = [row for row in self.rows if row.method == method]
        return next((row for row in own if row.ratio is None or same_ratio(row.ratio, ratio)), None)

    def of_method(self, method: str) -> tuple[Row, ...]:
        """Returns a method's rows, lowest ratio first."""
        return tuple(sorted((row for row in self.rows if row.method == method), key=lambda row: row.ratio or 0.0))

    def difference(self, row: Row, versus: str, metric: str) -> Difference | None:
        """Returns the paired comparison of a row with another method at the same ratio (or with its only row)."""
        for found in self.comparisons:
            if (found.method, found.versus, found.metric) != (row.method, versus, metric) or not same_ratio(found.ratio, row.ratio):
                continue
            if found.versus_ratio is None or same_ratio(found.versus_ratio, row.ratio):
                return found
        return None

    def cost(self, context: str) -> Cost | None:
        """Returns the one-off cost of a chunk context, None where it was not measured."""
        return next((cost for cost in self.costs if cost.context == context), None)


def same_ratio(a: float | None, b: float | None) -> bool:
    """Returns whether two ratios are the same grid point."""
    return a is b if a is None or b is None else abs(a - b) < 1e-6


def metric_of(name: str) -> Metric:
    """Returns a metric by name; a name of ours is assumed."""
    return next(metric for metric in METRICS if metric.name == name)
