"""A logistic rule that predicts whether a session goes on from what every server knows of a prompt: its turn, length and tools.

The baseline beside the trained network, and what predicts where a model has none, or where no model runs: logs and generated loads
hold no hidden states. Five features, standardised, fitted by Newton's method with a ridge. Knows numpy alone.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from engine.errors import BadRequest
from engine.prefix.workloads.workload import Workload

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "predictors" / "rule.json"
FORMAT, COMMAND = "fusescope-rule/1", "python -m engine.prefix.train_rule"
FEATURES = ("first turn", "ln(1 + turn)", "ln(prompt tokens)", "has tools", "turns with tools")
RIDGE, MOST_STEPS, TOLERANCE, LEAST_DEVIATION = 1.0, 50, 1e-9, 1e-6


class Fit(NamedTuple):
    """A logistic model of standardised features: weights, mean and deviation float64 [5], and the bias."""

    weights: np.ndarray
    bias: float
    mean: np.ndarray
    deviation: np.ndarray

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """Returns float32 [n] for features [n, 5]."""
        logits = (values - self.mean) / self.deviation @ self.weights + self.bias
        return (1.0 / (1.0 + np.exp(-logits))).astype(np.float32)


class SessionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fitted rule with its card.

    Args:
        features: names, in the order of `weights`, `mean` and `deviation`.
        data: what it was fitted on; num_sessions, num_requests: of fitting and of held-out test, which share no session.
        prior: share of requests whose session goes on among those it was fitted on.
        accuracy, f1, mcc, calibration_error: on held-out sessions; baseline_accuracy: of always saying the more frequent class there.
    """

    features: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    data: str
    num_sessions: tuple[int, int]
    num_requests: tuple[int, int]
    prior: float
    accuracy: float
    f1: float
    mcc: float
    calibration_error: float
    baseline_accuracy: float
    command: str
    created: str
    format: str = FORMAT

    @property
    def described(self) -> str:
        """Returns a phrase for people: what it is and what it is worth."""
        return (
            f"a logistic rule on turn, prompt length and tools, fitted on {self.data}: accuracy {self.accuracy:.1%}, MCC {self.mcc:.2f} on "
            f"{self.num_requests[1]:,} held-out requests"
        )

    def predicted(self, workload: Workload) -> Workload:
        """Returns a workload with the rule's predictions, each from its own prompt alone."""
        fitted = Fit(np.array(self.weights), self.bias, np.array(self.mean), np.array(self.deviation))
        values = features(workload.turn, workload.num_tokens, workload.is_agent)
        return replace(workload, follow_up=fitted.probabilities(values))


def features(turn: np.ndarray, num_tokens: np.ndarray, has_tools: np.ndarray) -> np.ndarray:
    """Returns float64 [n, 5] in the order of FEATURES.

    Args:
        turn: int [n], requests of the session before; num_tokens: int [n], of the prompt; has_tools: bool [n].
    """
    later, tools = np.log1p(np.asarray(turn, np.float64)), np.asarray(has_tools, np.float64)
    return np.stack([later == 0, later, np.log(np.maximum(num_tokens, 1.0)), tools, later * tools], 1).astype(np.float64)


def fit(values: np.ndarray, goes_on: np.ndarray) -> Fit:
    """Returns the rule that fits features float64 [n, 5] and outcomes bool [n]. Raises BadRequest where all outcomes are alike."""
    truth = np.asarray(goes_on, np.float64)
    if not 0.0 < truth.mean() < 1.0:
        raise BadRequest(f"All {len(truth):,} requests are of one class; give data in which some sessions end and some go on.")
    mean, deviation = values.mean(0), np.maximum(values.std(0), LEAST_DEVIATION)
    x = np.concatenate([(values - mean) / deviation, np.ones((len(values), 1))], 1)
    ridge = np.diag([RIDGE] * values.shape[1] + [0.0])
    beta = np.zeros(x.shape[1])
    for _ in range(MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(-(x @ beta)))
        slope = x.T @ (truth - p) - ridge @ beta
        step = np.linalg.solve((x * (p * (1.0 - p))[:, None]).T @ x + ridge, slope)
        beta += step
        if np.abs(step).max() < TOLERANCE:
            break
    return Fit(beta[:-1], float(beta[-1]), mean, deviation)


def load_rule(path: Path = SHIPPED) -> SessionRule:
    """Returns a rule's file. Raises BadRequest where it is missing or holds none."""
    try:
        rule = msgspec.json.decode(path.read_bytes(), type=SessionRule)
    except (OSError, msgspec.DecodeError) as error:
        raise BadRequest(f"The rule {path.name!r} cannot be read ({str(error)[:100]}); fit one with {COMMAND}.") from None
    if rule.format != FORMAT or rule.features != FEATURES:
        raise BadRequest(f"The rule {path.name!r} is of another version; fit one with {COMMAND}.")
    return rule
