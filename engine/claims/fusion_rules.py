"""Rules on benchmark results of fusion methods: speed, quality and both at once."""

from collections.abc import Iterable

from engine.claims.claim import Evidence, Finding, Verdict, basis_of
from engine.claims.rules import rule
from engine.claims.verdicts import Gain, gain_of, keeps, reaches, worst
from engine.results import EqualQuality, MedianInterval, ResultSet, Row, metric_of, same_ratio


def sets_of(evidence: Evidence, method: str, data: str = "") -> Iterable[ResultSet]:
    """Yields the sets that measured a method on data of this name."""
    return (found for found in evidence.sets if method in found.methods() and data.lower() in found.data.lower())


def times(interval: MedianInterval) -> str:
    """Returns '1.57× [1.49, 1.67]'."""
    return f"{interval.median:.2f}× [{interval.lo:.2f}, {interval.hi:.2f}]"


def _margin(results: ResultSet, metric: str, margin: float, relative: bool) -> float:
    """Returns an absolute margin; a relative one is a share of full prefill's value."""
    full = results.row("full")
    value = full.measure(metric) if full else None
    return margin * abs(value.mean) if relative and value else margin


@rule
def speedup_at_quality(
    evidence: Evidence, method: str, metric: str, margin: float, at_least: float, relative: bool = False, data: str = ""
) -> Iterable[Finding]:
    """Judges the largest speed-up over full prefill at a ratio that keeps full prefill's quality."""
    for results in sets_of(evidence, method, data):
        allowed = _margin(results, metric, margin, relative)
        pairs = [(row, gain) for row in results.of_method(method) if (gain := gain_of(results, row, "full", metric))]
        if pairs:
            yield _best_speedup(results, pairs, allowed, at_least, metric)


def _best_speedup(results: ResultSet, pairs: list[tuple[Row, Gain]], margin: float, at_least: float, metric: str) -> Finding:
    label = metric_of(metric).label
    shown = [row for row, gain in pairs if keeps(gain, margin) == "reproduced"]
    open_ = [row for row, gain in pairs if keeps(gain, margin) != "not reproduced"]
    if not open_:
        return Finding(
            "not reproduced", "at no ratio", f"Every measured ratio clearly loses {label} against full prefill.", basis_of(results)
        )
    fastest = max(open_, key=lambda row: row.speedup.median)
    if shown:
        row = max(shown, key=lambda row: row.speedup.median)
        figure = f"{times(row.speedup)} at ratio {row.ratio:g}"
        if row.speedup.median >= at_least:
            return Finding("reproduced", figure, f"There a loss of {label} beyond {margin:.3g} is excluded.", basis_of(results, row.n))
    else:
        figure = f"{times(fastest.speedup)} at ratio {fastest.ratio:g}"
    why = f"Without a clear loss of {label}: up to {times(fastest.speedup)} (ratio {fastest.ratio:g})."
    verdict: Verdict = "undecided" if fastest.speedup.median >= at_least else "not reproduced"
    tail = " Too few samples to exclude a loss there." if verdict == "undecided" else ""
    return Finding(verdict, figure, why + tail, basis_of(results, fastest.n))


@rule
def speedup(
    evidence: Evidence, method: str, ratio: float, at_least: float, metric: str = "", margin: float = 0.0, relative: bool = False
) -> Iterable[Finding]:
    """Judges the speed-up over full prefill at a given ratio, and that quality is kept where a metric is named."""
    for results in sets_of(evidence, method):
        row = results.row(method, ratio)
        if row is None:
            continue
        gain = gain_of(results, row, "full", metric) if metric else None
        if metric and gain is None:
            continue
        verdicts = [reaches(Gain(*_ends(row.speedup)), at_least, 1.0)]
        why = f"Speed-up: {verdicts[0]}."
        if gain is not None:
            verdicts.append(keeps(gain, _margin(results, metric, margin, relative)))
            why += f" {metric_of(metric).label} against full prefill {gain.words(metric)}: {verdicts[1]}."
        yield Finding(worst(verdicts), f"{times(row.speedup)} at ratio {ratio:g}", why, basis_of(results, row.n))


def _ends(interval: MedianInterval) -> tuple[float, float, float]:
    return interval.median, interval.lo, interval.hi


@rule
def better_than(
    evidence: Evidence, method: str, versus: str, metric: str, at_least: float, ratio: float | None = None, data: str = ""
) -> Iterable[Finding]:
    """Judges by how much a method is better than another at the same ratio."""
    for results in sets_of(evidence, method, data):
        row = results.row(method, ratio)
        gain = gain_of(results, row, versus, metric) if row else None
        if row and gain:
            yield Finding(reaches(gain, at_least), gain.words(metric), _at(row, metric), basis_of(results, row.n))


@rule
def no_worse(
    evidence: Evidence, method: str, versus: str, metric: str, margin: float, ratio: float | None = None, data: str = ""
) -> Iterable[Finding]:
    """Judges that a method is at most `margin` worse than another at the same ratio."""
    for results in sets_of(evidence, method, data):
        row = results.row(method, ratio)
        gain = gain_of(results, row, versus, metric) if row else None
        if row and gain:
            why = f"{_at(row, metric)} A loss of up to {100 * margin:.3g} points counts as equal."
            yield Finding(keeps(gain, margin), gain.words(metric), why, basis_of(results, row.n))


def _at(row: Row, metric: str) -> str:
    where = "" if row.ratio is None else f" at ratio {row.ratio:g}"
    return f"{metric_of(metric).label}{where}, paired by question, 95 % interval."


@rule
def faster_at_equal_quality(
    evidence: Evidence, method: str, versus: dict[str, str], versus_ratio: float, saves: float
) -> Iterable[Finding]:
    """Judges the time to first token saved against each rival where the method is as close to full prefill as that rival.

    Args:
        versus: rivals, by name as they are called in the claim.
    """
    for results in sets_of(evidence, method):
        own = [pair for pair in results.latency_at_equal_quality if pair.method == method and pair.versus in versus]
        pairs = [pair for pair in own if same_ratio(pair.versus_ratio, versus_ratio)]
        if pairs:
            found = [_saving(pair, saves) for pair in pairs]
            figure = "; ".join(f"{versus[pair.versus]} {words}" for pair, (_, words) in zip(pairs, found, strict=True))
            why = f"Time saved at the KL to full prefill that a rival has at ratio {versus_ratio:g}; the claim must hold against each."
            yield Finding(worst(verdict for verdict, _ in found), figure, why, basis_of(results, min(pair.n for pair in pairs)))


def _saving(pair: EqualQuality, saves: float) -> tuple[Verdict, str]:
    """Returns the verdict on one rival, and the share of time saved in words."""
    if pair.ttft_ratio is None or not pair.reached:
        return "not reproduced", "not as close at any ratio"
    gain = Gain(1 - pair.ttft_ratio.mean, 1 - pair.ttft_ratio.hi, 1 - pair.ttft_ratio.lo)
    return reaches(gain, saves), _percent(gain)


def _percent(gain: Gain) -> str:
    return f"{100 * gain.value:+.0f} % [{100 * gain.lo:+.0f}, {100 * gain.hi:+.0f}]".replace("-", "−")


@rule
def faster_at_same_ratio(evidence: Evidence, method: str, versus: str, ratio: float, saves: float) -> Iterable[Finding]:
    """Judges the time to first token saved against another method at the same ratio."""
    for results in sets_of(evidence, method):
        row = results.row(method, ratio)
        found = results.difference(row, versus, "ttft_ratio") if row else None
        if row and found:
            gain = Gain(1 - found.mean, 1 - found.hi, 1 - found.lo)
            yield Finding(
                reaches(gain, saves), _percent(gain), f"Time saved at ratio {ratio:g}, paired by question.", basis_of(results, found.n)
            )


@rule
def selection_share(evidence: Evidence, method: str, ratio: float, at_most: float = 1.0, at_least: float = 0.0) -> Iterable[Finding]:
    """Judges the share of the time to first token that choosing the tokens takes (probe and selection)."""
    for results in sets_of(evidence, method):
        row = results.row(method, ratio)
        total = sum(row.parts_s.values()) if row else 0.0
        if row and total > 0:
            share = (row.parts_s.get("probe", 0.0) + row.parts_s.get("select", 0.0)) / total
            verdict: Verdict = "reproduced" if at_least <= share <= at_most else "not reproduced"
            why = f"Probe and selection at ratio {ratio:g}, of medians; the file has no interval for it."
            yield Finding(verdict, f"{100 * share:.0f} %", why, basis_of(results, row.n))


@rule
def first_use_costs(evidence: Evidence, method: str, ratio: float) -> Iterable[Finding]:
    """Judges that a method is slower than full prefill on the first use of its chunks, caches built included."""
    for results in sets_of(evidence, method):
        row, full = results.row(method, ratio), results.row("full")
        cost = results.cost(row.context or results.context) if row else None
        if row and full and cost:
            first = cost.build_s.median + row.ttft_s.median
            verdict: Verdict = "reproduced" if first > full.ttft_s.median else "not reproduced"
            figure = f"{first:.2f} s against {full.ttft_s.median:.2f} s"
            yield Finding(
                verdict, figure, "Building the caches and answering once, against full prefill; medians.", basis_of(results, row.n)
            )
