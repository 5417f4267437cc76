"""Generated workloads: seeds, shapes, arrivals, predictions, and how blocks are numbered and typed."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_worlds import paths

from engine.errors import BadRequest
from engine.prefix.workloads.arrivals import fixed, poisson, recorded
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.catalog import workload_names
from engine.prefix.workloads.generate import MIXTURES, generate
from engine.prefix.workloads.stream import block_kinds


@pytest.fixture(scope="module")
def made():
    """Generates each workload once, for tests that only look at it: a name and a seed always give the same."""
    return functools.cache(generate)


def test_generated_workloads_are_reproducible():
    first, again, other = generate("balanced", 3), generate("balanced", 3), generate("balanced", 4)
    for name in ("time_s", "path", "kind", "session"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.num_tokens, other.num_tokens)


@pytest.mark.parametrize("name", ["multi_turn_dominant", "balanced", "single_turn_dominant", "tool_use"])
def test_generated_mixes_have_their_shape(made, name):
    workload = made(name, 0)
    assert abs(workload.num_requests - MIXTURES[name].num_requests) < 30
    assert (np.diff(workload.time_s) >= 0).all() and (workload.num_prompt <= np.diff(workload.starts)).all()
    assert (workload.num_tokens // 16 == workload.num_prompt).all()
    shares = [float((made(mix, 0).turn > 0).mean()) for mix in ("multi_turn_dominant", "balanced", "single_turn_dominant")]
    assert shares == sorted(shares, reverse=True)


def test_half_of_the_shift_is_another_mix(made):
    workload = made("shift", 0)
    half = workload.num_requests // 2
    assert workload.is_agent[half:].mean() > 2 * workload.is_agent[:half].mean()


def test_arrivals():
    rng = np.random.default_rng(0)
    drawn = poisson(2.0)(rng)
    assert np.mean(np.diff([next(drawn) for _ in range(4_000)])) == pytest.approx(2.0, rel=0.1)
    steady, seen = fixed(0.05)(rng), recorded(np.array([5.0, 6.0, 9.0]))(rng)
    assert [next(steady) for _ in range(3)] == pytest.approx([0.0, 0.05, 0.1])
    assert [next(seen) for _ in range(5)] == pytest.approx([0.0, 1.0, 4.0, 6.0, 7.0])
    for gap_s in (0.0, -1.0, float("nan")):
        with pytest.raises(BadRequest):
            fixed(gap_s)


@given(st.lists(st.integers(0, 4), max_size=70))
@settings(deadline=None)
def test_a_mixed_block_takes_the_majority_ties_to_the_earlier(kinds):
    found = block_kinds(np.array(kinds, np.uint8), 8)
    assert len(found) == len(kinds) // 8
    for i, kind in enumerate(found):
        block = kinds[8 * i : 8 * i + 8]
        most = max(block.count(k) for k in block)
        assert kind == next(k for k in block if block.count(k) == most)


def test_predictions_are_as_right_as_asked(made):
    workload = made("balanced", 0)
    for accuracy in (0.5, 0.77):
        said = workload.predicted(accuracy, 1).follow_up >= 0.5
        assert (said == workload.goes_on).mean() == pytest.approx(accuracy, abs=0.05)
    oracle = workload.predicted(1.0, 1).follow_up
    assert set(oracle.tolist()) == {0.0, 1.0} and ((oracle == 1.0) == workload.goes_on).all()
    assert (workload.unpredicted().follow_up == -1.0).all()


def test_blocks_are_numbered_by_first_use():
    builder = WorkloadBuilder("order", 16)
    late = builder.blocks(["x", "y"])
    builder.add(Arrival(5.0, "b", 32), late)
    builder.add(Arrival(1.0, "a", 32), builder.blocks(["z", "y"]))
    builder.blocks(["never used"])
    workload = builder.build()
    assert paths(workload) == [[0, 1], [2, 3]] and workload.num_blocks == 4 and workload.parent.tolist() == [-1, 0, -1, 2]


def test_all_generated_workloads_are_offered():
    assert set(workload_names()) == set(MIXTURES)
