"""Rules on where the question's attention goes: recorded runs and calibration tables."""

from collections.abc import Iterable

import numpy as np

from engine.claims.claim import Basis, Evidence, Finding, LayerTable, hardware
from engine.claims.rules import rule
from engine.claims.verdicts import Gain, reaches


@rule
def attention_held(evidence: Evidence, tokens: float, at_least: float) -> Iterable[Finding]:
    """Judges the share of the question's attention to the documents that the best-scored tokens hold, in the recorded runs."""
    runs = [(run, method) for run in evidence.runs if (method := run.method("qcfuse")) is not None and method.scores is not None]
    if not runs:
        return
    shares = [_top_share(method.scores, tokens) for _, method in runs]
    gain, source = _mean_interval(shares), runs[0][0].provenance
    figure = f"{100 * gain.value:.0f} % [{100 * gain.lo:.0f}, {100 * gain.hi:.0f}]"
    why = f"Attention at the critical layer, held by the top {100 * tokens:g} % of document tokens."
    basis = Basis("recorded scenarios", len(runs), source.model, hardware(source), source.created[:10], "python -m engine.bench record")
    yield Finding(reaches(gain, at_least), figure, why, basis)


def _top_share(scores: np.ndarray, tokens: float) -> float:
    best = np.sort(scores.astype(np.float64))[::-1]
    return float(best[: max(1, int(tokens * len(best)))].sum() / max(best.sum(), 1e-30))


def _mean_interval(values: list[float]) -> Gain:
    """Returns the mean with a seeded percentile-bootstrap interval."""
    data = np.asarray(values)
    draws = data[np.random.default_rng(0).integers(0, len(data), (2_000, len(data)))].mean(axis=1)
    low, high = np.percentile(draws, [2.5, 97.5])
    return Gain(float(data.mean()), float(low), float(high))


@rule
def best_layer_recall(evidence: Evidence, at_least: float) -> Iterable[Finding]:
    """Judges the recall of answer tokens at the best single layer."""
    for table in evidence.tables:
        best = int(np.argmax(table.recall))
        gain = Gain(
            table.recall[best], table.recall[best] - 1.96 * table.recall_se[best], table.recall[best] + 1.96 * table.recall_se[best]
        )
        figure = f"{100 * gain.value:.0f} % [{100 * gain.lo:.0f}, {100 * gain.hi:.0f}]"
        yield Finding(
            reaches(gain, at_least), figure, f"Recall@10 % of the answer's tokens at layer {table.layers[best]}.", _of_table(table)
        )


@rule
def best_layer_over_last(evidence: Evidence, at_least: float) -> Iterable[Finding]:
    """Judges by how much the best layer finds more of the answer than the last one."""
    for table in evidence.tables:
        best = int(np.argmax(table.recall))
        error = 1.96 * float(np.hypot(table.recall_se[best], table.recall_se[-1]))
        value = table.recall[best] - table.recall[-1]
        gain = Gain(value, value - error, value + error)
        why = f"Recall@10 % at layer {table.layers[best]} minus that at layer {table.layers[-1]}; the interval takes the two as unpaired."
        yield Finding(reaches(gain, at_least), gain.words("rouge_l"), why, _of_table(table))


def _of_table(table: LayerTable) -> Basis:
    return Basis("calibration sets", table.n, table.model, "accuracy only, no time", table.created, table.command)
