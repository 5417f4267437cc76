"""What predictions of "the session goes on" are worth: accuracy, F1, Matthews' correlation, calibration. Knows numpy alone."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

LIKELY, NUM_BINS = 0.5, 10


class Scores(NamedTuple):
    """Accuracy, F1 of "goes on" and Matthews' correlation of predictions."""

    accuracy: float
    f1: float
    mcc: float


def scores(goes_on: ArrayLike, predicted: ArrayLike) -> Scores:
    """Returns the scores of int [n] predictions; F1 and MCC are 0 where they are not defined."""
    truth, said = np.asarray(goes_on).astype(bool), np.asarray(predicted).astype(bool)
    tp, tn = int((truth & said).sum()), int((~truth & ~said).sum())
    fp, fn = int((~truth & said).sum()), int((truth & ~said).sum())
    product = float(tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return Scores(
        accuracy=(tp + tn) / max(tp + tn + fp + fn, 1),
        f1=2 * tp / (2 * tp + fp + fn) if tp else 0.0,
        mcc=(tp * tn - fp * fn) / product**0.5 if product else 0.0,
    )


def calibration_error(goes_on: ArrayLike, probability: ArrayLike) -> float:
    """Returns the expected calibration error of probabilities [n]: |mean said - share that went on| in ten equal bins, weighted by
    how many fall into each."""
    truth, said = np.asarray(goes_on, np.float64), np.asarray(probability, np.float64)
    bins = np.minimum((said * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    gaps = np.abs(np.bincount(bins, said, NUM_BINS) - np.bincount(bins, truth, NUM_BINS))
    return float(gaps.sum() / max(len(said), 1))


def baseline_accuracy(goes_on: ArrayLike) -> float:
    """Returns the accuracy of always saying what is more frequent."""
    share = float(np.asarray(goes_on, np.float64).mean())
    return max(share, 1.0 - share)
