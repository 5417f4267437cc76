"""What a prefill costs: fitted to times, measured on the running model once, kept with where it was measured."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import tiny_runtime

from engine import prefill_costs
from engine.cache_types import ReplayRequest
from engine.errors import BadRequest, Cancelled
from engine.prefill_costs import FOLDER, running_cost
from engine.prefix.cost import PUBLISHED_8B, PrefillCost
from engine.prefix.cost_measure import ROUNDS, medians, prefill_times
from engine.replays import Replays
from engine.turns import Turns


@pytest.fixture
def runtime(tmp_path):
    return tiny_runtime(tmp_path)


@pytest.mark.parametrize(("linear", "quadratic"), [(1e-4, 2e-8), (1e-3, 0.0), (0.0, 1e-7)])
def test_a_fit_finds_the_cost_that_made_the_times(linear, quadratic):
    lengths = np.array([128, 256, 512, 1024])
    found = PrefillCost.fitted("made up", lengths, linear * lengths + quadratic * lengths**2, "test")
    assert (found.linear_s, found.quadratic_s) == pytest.approx((linear, quadratic), abs=1e-12)


@pytest.mark.parametrize("seconds", [[0.1, 0.15, 0.2], [0.001, 0.1, 3.0]])
def test_noise_makes_nothing_free(seconds):
    found = PrefillCost.fitted("noisy", np.array([100, 200, 400]), np.array(seconds), "test")
    assert found.linear_s >= 0 and found.quadratic_s >= 0 and found.seconds(np.array(300)) > 0
    assert (np.diff(found.ttft_s(np.array([400, 400]), np.array([0, 200]))) < 0).all()


def test_one_length_is_too_few():
    with pytest.raises(BadRequest, match="at least two prompt lengths"):
        PrefillCost.fitted("x", np.array([5, 5]), np.array([1.0, 1.0]), "test")


def test_the_model_is_timed_at_every_length_in_turn(runtime):
    shares = []
    times = prefill_times(runtime.decoder, runtime.pool, shares.append)
    assert all(len(found) == ROUNDS and min(found) > 0 for found in times.values()) and len(times) >= 2
    assert shares == sorted(shares) and shares[-1] == 1.0
    lengths, seconds = medians(times)
    assert lengths.tolist() == sorted(times) and len(seconds) == len(times)
    with pytest.raises(Cancelled, match="nothing was kept"):
        prefill_times(runtime.decoder, runtime.pool, cancelled=lambda: True)


def test_a_cost_is_measured_once_and_kept_with_its_setting(runtime, monkeypatch):
    calls = []
    monkeypatch.setattr(prefill_costs, "prefill_times", lambda *args: calls.append(1) or {64: (0.1, 0.1, 0.1), 256: (0.4, 0.5, 0.4)})
    first = running_cost(runtime)
    assert (
        first.source.startswith("measured: tiny-llama in float32 on ")
        and "1 threads; prefills of 64 to 256 tokens, median of 3" in first.source
    )
    assert running_cost(runtime) == first and len(calls) == 1
    runtime.num_threads += 1
    assert "2 threads" in running_cost(runtime).source and len(calls) == 2
    (path,) = (runtime.settings.cache_dir / FOLDER).iterdir()
    path.write_text("{")
    assert running_cost(runtime).linear_s == first.linear_s and len(calls) == 3


def test_replays_are_modelled_with_the_cost_that_is_asked_for_once_a_batch():
    asked, twice = [], replace(PUBLISHED_8B, linear_s=2 * PUBLISHED_8B.linear_s, quadratic_s=2 * PUBLISHED_8B.quadratic_s, source="made up")
    requests = [ReplayRequest("tool_use", name, 0.1) for name in ("lru", "saecache")]
    slow = Replays(Turns(), cost=lambda on_status, cancelled: asked.append(1) or twice).run(requests)
    plain = Replays(Turns()).run(requests)
    assert len(asked) == 1
    for run, other in zip(slow, plain, strict=True):
        np.testing.assert_allclose(run.requests.ttft_s, 2 * other.requests.ttft_s, rtol=1e-5)
        assert run.requests.hit_blocks.tolist() == other.requests.hit_blocks.tolist()
        assert run.cost.endswith("made up") and other.cost.startswith("8b-a100")
