"""Rules on eviction: replays by seed, live runs, session predictors.

Differences are paired by seed, with Student's interval over seeds: few seeds give wide ones. A claim about every workload or capacity
must hold in each cell, and every cell counts for itself: with many cells some interval misses by chance.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.claims.claim import Basis, Evidence, Finding, Verdict
from engine.claims.evictions import EvictionRow, EvictionSet, Mean, PredictorFigures
from engine.claims.rules import rule
from engine.claims.verdicts import Gain, keeps, reaches, worst

HITS, TTFT = "hit_tokens_second_half", "modelled_ttft_s"
# Student's t, 97.5 %, by degrees of freedom; beyond the last the normal's.
_T = (math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


class Cell(NamedTuple):
    """What a policy gains at one capacity of one workload under one predictor."""

    workload: str
    capacity: float
    predictor: str
    gain: Gain
    n: int
    source: EvictionSet


def paired(values: Sequence[float]) -> Gain:
    """Returns the mean of paired differences with its interval; of a single one, that value thrice."""
    num = len(values)
    mean = sum(values) / num
    if num == 1:
        return Gain(mean, mean, mean)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (num - 1))
    half = (_T[num - 1] if num <= len(_T) else 1.96) * deviation / math.sqrt(num)
    return Gain(mean, mean - half, mean + half)


@rule
def hits_over_rivals(
    evidence: Evidence, policy: str, rivals: Sequence[str], at_least: float, workloads: Sequence[str] = ()
) -> Iterable[Finding]:
    """Judges by how many of the prompt tokens a policy finds more than the better of its rivals, in every cell."""

    def gain(own: EvictionRow, others: dict[str, EvictionRow]) -> Gain | None:
        known = [others[name].by_seed[HITS] for name in rivals if name in others]
        if len(known) < len(rivals):
            return None
        best = max(known, key=sum)
        return paired([a - b for a, b in zip(own.by_seed[HITS], best, strict=True)])

    cells = _cells(evidence, policy, workloads, gain)
    return _by_workload(cells, lambda found: reaches(found, at_least), _points, f"the better of {_named(rivals)}")


@rule
def saves_time(evidence: Evidence, policy: str, versus: str, saves: float, workloads: Sequence[str] = ()) -> Iterable[Finding]:
    """Judges the share of another policy's modelled time to first token that a policy saves, in every cell."""

    def gain(own: EvictionRow, others: dict[str, EvictionRow]) -> Gain | None:
        if versus not in others:
            return None
        return paired([1 - a / b for a, b in zip(own.by_seed[TTFT], others[versus].by_seed[TTFT], strict=True)])

    return _by_workload(_cells(evidence, policy, workloads, gain), lambda found: _saves(found, saves), _percent, versus)


@rule
def never_below(evidence: Evidence, policy: str, versus: str, margin: float, workloads: Sequence[str] = ()) -> Iterable[Finding]:
    """Judges that a policy never finds clearly less than another, in any cell."""

    def gain(own: EvictionRow, others: dict[str, EvictionRow]) -> Gain | None:
        if versus not in others:
            return None
        return paired([a - b for a, b in zip(own.by_seed[HITS], others[versus].by_seed[HITS], strict=True)])

    # One seed has no interval: there the value itself must hold.
    return _by_workload(_cells(evidence, policy, workloads, gain), lambda found: keeps(found, margin), _points, versus)


@rule
def closes_gap(evidence: Evidence, policy: str, at_least: float, workloads: Sequence[str] = ()) -> Iterable[Finding]:
    """Judges how much of the way from LRU to the limit MIN a policy goes, in every cell."""

    def gain(own: EvictionRow, others: dict[str, EvictionRow]) -> Gain | None:
        found = own.gap_closed
        return None if found is None else Gain(found.mean, found.lo, found.hi)

    cells = _cells(evidence, policy, workloads, gain)
    return _by_workload(cells, lambda found: reaches(found, at_least), _percent, "LRU, of the way to MIN")


@rule
def eviction_cost_flat(evidence: Evidence, policy: str, at_most: float) -> Iterable[Finding]:
    """Judges that an eviction costs no more in a large cache than in a small one."""
    for results in evidence.evictions:
        rows = sorted((row for row in results.scaling if row.policy == policy), key=lambda row: row.capacity_blocks)
        if len(rows) < 2:
            continue
        small, large = rows[0], rows[-1]
        ratio = large.us_per_eviction / small.us_per_eviction
        verdict: Verdict = "reproduced" if ratio <= at_most else "not reproduced"
        figure = ", ".join(f"{row.us_per_eviction:.0f} µs at {row.capacity_blocks:,} blocks" for row in (small, large))
        why = f"Processor time an eviction, look-ups and learning included: {ratio:.2f}×; up to {at_most:g}× counts as flat."
        yield Finding(verdict, figure, why, replace(results.basis("a stream of sessions", len(rows)), hardware="one core"))


@rule
def live_saves_time(evidence: Evidence, policy: str, saves: float = 0.0) -> Iterable[Finding]:
    """Judges the share of LRU's measured mean time to first token that a policy saves on the same requests."""
    for results in evidence.lives:
        row = next((row for row in results.rows if row.policy == policy), None)
        lru = next((row for row in results.rows if row.policy == "lru"), None)
        if row is None or lru is None:
            continue
        ratio, source = row.ttft_to_lru, results.provenance
        gain = Gain(1 - ratio.mean, 1 - ratio.hi, 1 - ratio.lo)
        why = (
            f"Measured on the same requests in turn; {100 * row.hit_tokens:.1f} % of the prompt tokens were found, "
            f"{100 * lru.hit_tokens:.1f} % under LRU."
        )
        if row.from_hits is not None:
            why += f" Counting only the {row.num_hits_differ:,} requests for which they differ: {_times(row.from_hits)} of LRU's mean time."
        basis = Basis(
            "scripted sessions", row.n, source.model, f"{source.device}, {source.num_threads} threads", source.created[:10], results.command
        )
        yield Finding(_saves(gain, saves), _percent(gain), why, basis)


@rule
def predictor_accuracy(evidence: Evidence, at_least: float) -> Iterable[Finding]:
    """Judges how often the trained session predictor is right on held-out conversations."""
    for card in evidence.predictors:
        num = card.num_samples[2]
        half = 1.96 * math.sqrt(card.accuracy * (1 - card.accuracy) / num)
        gain = Gain(card.accuracy, card.accuracy - half, card.accuracy + half)
        figure = f"{100 * gain.value:.1f} % [{100 * gain.lo:.1f}, {100 * gain.hi:.1f}]"
        why = f"F1 {card.f1:.3f}, MCC {card.mcc:.2f}; always saying what is more frequent is right on {100 * card.baseline_accuracy:.1f} %."
        yield Finding(reaches(gain, at_least, card.baseline_accuracy), figure, why, _of_card(card, "accuracy only, no time"))


@rule
def predictor_speed(evidence: Evidence, at_least: float) -> Iterable[Finding]:
    """Judges how many single predictions a second the trained session predictor makes, the model's own prefill left out."""
    for card in evidence.predictors:
        verdict: Verdict = "reproduced" if card.predictions_per_s >= at_least else "not reproduced"
        why = "One prediction at a time, the network alone; its input is there once the prompt is prefilled. No interval."
        yield Finding(verdict, f"{card.predictions_per_s:,.0f} a second", why, _of_card(card, "CPU"))


def _saves(gain: Gain, saves: float) -> Verdict:
    """Returns the verdict on time saved; none or less than none is a claim of "no slower than"."""
    return reaches(gain, saves) if saves > 0 else keeps(gain, -saves)


def _of_card(card: PredictorFigures, hardware: str) -> Basis:
    return Basis(card.data, card.num_samples[2], card.model, hardware, card.created[:10], "python -m engine.prefix.train_predictor")


def _cells(
    evidence: Evidence,
    policy: str,
    workloads: Sequence[str],
    gain: Callable[[EvictionRow, dict[str, EvictionRow]], Gain | None],
) -> list[Cell]:
    """Returns a cell for each row of a policy whose gain can be told; `workloads` none for all."""
    found = []
    for results in evidence.evictions:
        places: dict[tuple[str, float, str], dict[str, EvictionRow]] = {}
        for row in results.rows:
            places.setdefault((row.workload, row.capacity, row.predictor), {})[row.policy] = row
        for (workload, capacity, predictor), rows in places.items():
            value = gain(rows[policy], rows) if policy in rows and (not workloads or workload in workloads) else None
            if value is not None:
                found.append(Cell(workload, capacity, predictor, value, rows[policy].n, results))
    return found


def _by_workload(cells: Sequence[Cell], verdict: Callable[[Gain], Verdict], words: Callable[[Gain], str], versus: str) -> Iterable[Finding]:
    """Yields a finding for each predictor over all workloads, then for each workload of each predictor."""
    details = []
    for predictor in dict.fromkeys(cell.predictor for cell in cells):
        own = [cell for cell in cells if cell.predictor == predictor]
        names = list(dict.fromkeys(cell.workload for cell in own))
        if len(names) > 1:
            yield _finding(own, verdict, words, f"{len(names)} loads", versus)
        details += [[cell for cell in own if cell.workload == name] for name in names]
    for group in details:
        yield _finding(group, verdict, words, group[0].workload, versus)


def _finding(cells: Sequence[Cell], verdict: Callable[[Gain], Verdict], words: Callable[[Gain], str], data: str, versus: str) -> Finding:
    verdicts = [verdict(cell.gain) for cell in cells]
    least, most = min(cells, key=lambda cell: cell.gain.value), max(cells, key=lambda cell: cell.gain.value)
    num = verdicts.count("reproduced")
    figure = (
        words(least.gain) if least is most else f"{_place(least, cells)} {words(least.gain)} … {_place(most, cells)} {words(most.gain)}"
    )
    told = "" if cells[0].predictor == "none" else f" Predictor: {_predictor(cells[0].predictor)}."
    seeds = f"{min(cell.n for cell in cells)} seed{'' if min(cell.n for cell in cells) == 1 else 's'}"
    why = f"Against {versus}: the claim holds in {num} of {len(cells)} cells of load and capacity, {seeds}.{told}"
    return Finding(worst(verdicts), figure, why, cells[0].source.basis(data, sum(cell.n for cell in cells)))


def _place(cell: Cell, cells: Sequence[Cell]) -> str:
    """Returns where a cell is, as far as cells differ: '5 %', 'balanced at 5 %'."""
    share = f"{100 * cell.capacity:g} %" if cell.capacity < 1 else f"{cell.capacity:,.0f} blocks"
    return share + ":" if len({one.workload for one in cells}) == 1 else f"{cell.workload} at {share}:"


def _predictor(name: str) -> str:
    try:
        return f"right in {100 * float(name):g} % of all cases"
    except ValueError:
        return {"oracle": "always right", "rule": "a logistic rule on turn, length and tools"}.get(name, name)


def _named(rivals: Sequence[str]) -> str:
    return " and ".join(name.upper() for name in rivals)


def _points(gain: Gain) -> str:
    return gain.words("f1")


def _times(ratio: Mean) -> str:
    return f"{ratio.mean:.3f}× [{ratio.lo:.3f}, {ratio.hi:.3f}]"


def _percent(gain: Gain) -> str:
    return f"{100 * gain.value:+.0f} % [{100 * gain.lo:+.0f}, {100 * gain.hi:+.0f}]".replace("-", "−")
