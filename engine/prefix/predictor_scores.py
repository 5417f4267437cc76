"""What predictions of "the session goes on" are worth: accuracy, F1, Matthews' correlation, calibration, Brier score, each with a
bootstrap interval over conversations. Knows numpy alone."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

LIKELY, NUM_BINS = 0.5, 10
DRAWS, SEED = 2_000, 0


class Scores(NamedTuple):
    """Accuracy, F1 of "goes on" and Matthews' correlation of predictions."""

    accuracy: float
    f1: float
    mcc: float


class Worth(NamedTuple):
    """What probabilities are worth, "goes on" being predicted from LIKELY on; arrays where there are several drawings of the samples.

    Args:
        calibration_error: see `calibration_error`; brier: mean squared distance from what came true, 0 at best.
    """

    accuracy: np.ndarray | float
    f1: np.ndarray | float
    mcc: np.ndarray | float
    calibration_error: np.ndarray | float
    brier: np.ndarray | float


def scores(goes_on: ArrayLike, predicted: ArrayLike) -> Scores:
    """Returns the scores of int [n] predictions; F1 and MCC are 0 where they are not defined."""
    found = worth(goes_on, np.asarray(predicted).astype(bool))
    return Scores(found.accuracy, found.f1, found.mcc)


def calibration_error(goes_on: ArrayLike, probability: ArrayLike) -> float:
    """Returns the expected calibration error of probabilities [n]: |mean said - share that went on| in ten equal bins, weighted by
    how many fall into each."""
    return float(worth(goes_on, probability).calibration_error)


def worth(goes_on: ArrayLike, probability: ArrayLike) -> Worth:
    """Returns what probabilities [n] are worth; F1 and MCC are 0 where they are not defined."""
    found = _worths(np.asarray(goes_on), np.asarray(probability), np.ones((1, len(np.asarray(goes_on)))))
    return Worth(*(float(values[0]) for values in found))


def resampled(goes_on: ArrayLike, probability: ArrayLike, conversation: ArrayLike) -> Worth:
    """Returns what probabilities [n] are worth on DRAWS samples of whole conversations, drawn with replacement; the same conversations
    are drawn for every predictor, so that two can be held against each other.

    Args:
        conversation: int [n], which one a prompt is from: prompts of one are alike.
    """
    _, group = np.unique(np.asarray(conversation), return_inverse=True)
    num = int(group.max()) + 1
    drawn = np.random.default_rng(SEED).multinomial(num, np.full(num, 1.0 / num), DRAWS)
    return _worths(np.asarray(goes_on), np.asarray(probability), drawn[:, group])


def ends(values: np.ndarray | float) -> tuple[float, float]:
    """Returns the ends of the 95 % interval of drawn values."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def baseline_accuracy(goes_on: ArrayLike) -> float:
    """Returns the accuracy of always saying what is more frequent."""
    share = float(np.asarray(goes_on, np.float64).mean())
    return max(share, 1.0 - share)


def _worths(goes_on: np.ndarray, probability: np.ndarray, weights: np.ndarray) -> Worth:
    """Returns arrays [draws]; weights [draws, n] are how often each prompt was drawn."""
    truth, p, w = goes_on.astype(bool), probability.astype(np.float64), weights.astype(np.float64)
    said = p >= LIKELY
    tp, tn, fp, fn = (w @ hits.astype(np.float64) for hits in (truth & said, ~truth & ~said, ~truth & said, truth & ~said))
    total = np.maximum(tp + tn + fp + fn, 1.0)
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    bins = np.minimum((p * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    gaps = w @ (np.eye(NUM_BINS)[bins] * (p - truth)[:, None])
    return Worth(
        accuracy=(tp + tn) / total,
        f1=2 * tp / np.maximum(2 * tp + fp + fn, 1.0),
        mcc=np.where(product > 0, (tp * tn - fp * fn) / np.sqrt(np.maximum(product, 1.0)), 0.0),
        calibration_error=np.abs(gaps).sum(1) / total,
        brier=w @ (p - truth) ** 2 / total,
    )
