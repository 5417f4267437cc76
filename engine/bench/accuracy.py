"""The option that says how well the session predictor of a benchmark predicts."""

import math

from engine.errors import BadRequest


def parse_accuracy(text: str, choices: str = "none, oracle") -> float | None:
    """Returns a predictor's accuracy, None without one. Raises BadRequest, which names the `choices` beside a number."""
    named = {"none": None, "oracle": 1.0}
    if text in named:
        return named[text]
    try:
        accuracy = float(text)
    except ValueError:
        accuracy = math.nan
    if not 0.0 <= accuracy <= 1.0:
        raise BadRequest(f"--predictor is {text!r}; give {choices} or an accuracy from 0 to 1.")
    return accuracy
