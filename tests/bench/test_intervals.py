"""Intervals: seeded, finite for every number of samples, ordered, and paired where two columns are drawn together."""

import numpy as np
import pytest

from engine.bench.intervals import interval, ratio_of_means, resampled


@pytest.mark.parametrize("statistic", [np.mean, np.median], ids=["mean", "median"])
@pytest.mark.parametrize("values", [[3.0], [3.0, 3.0], [0.1] * 7, [0.0, 1.0], [1.0, 2.0, 3.0, 50.0]], ids=str)
def test_an_interval_is_finite_and_holds_its_statistic(values, statistic):
    found = interval(np.array(values), statistic)
    assert found.value == pytest.approx(statistic(values)) and found.lo - 1e-12 <= found.value <= found.hi + 1e-12
    if len(set(values)) == 1:
        assert (found.lo, found.hi) == pytest.approx((values[0], values[0]))


def test_the_interval_of_a_mean_is_near_its_formula():
    values = np.random.default_rng(1).normal(5.0, 2.0, size=400)
    found, error = interval(values), 1.96 * values.std(ddof=1) / 20
    assert found.lo == pytest.approx(values.mean() - error, abs=0.03)
    assert found.hi == pytest.approx(values.mean() + error, abs=0.03)
    assert found == interval(values)


def test_what_is_not_a_number_is_left_out():
    assert interval(np.array([np.nan, 2.0, 2.0])).value == 2.0
    assert interval(np.array([np.nan])) is None


def test_columns_drawn_together_stay_paired():
    other = np.array([1.0, 10.0, 100.0, 1000.0])
    found = ratio_of_means(3 * other, other, 1e-6)
    assert tuple(found) == pytest.approx((3.0, 3.0, 3.0))
    assert tuple(ratio_of_means(np.zeros(3), np.full(3, 1e-9), 1e-6)) == (1.0, 1.0, 1.0)
    assert ratio_of_means(np.array([np.nan]), np.array([1.0]), 1e-6) is None


def test_a_statistic_gets_whole_numbers_of_samples():
    assert resampled(lambda picks, axis: (picks < 4).mean(axis), 4) == (1.0, 1.0, 1.0)
