"""SAE-G: curves recovered under censoring, exact choice at two ends, cold start, units of time, the guard."""

import numpy as np
import pytest
from prefix_worlds import drive, evictions, make_tree, small_workload

from engine.errors import BadRequest
from engine.prefix.policies import POLICIES
from engine.prefix.saeg.buckets import HI, LO, NUM_BUCKETS, WIDTH, bucket, overlaps, place
from engine.prefix.saeg.classes import NUM_CLASSES, Classifier, in_words
from engine.prefix.saeg.curves import Curves, _unimodal
from engine.prefix.saeg.records import Records
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder

ONE_CLASS = "agent,wait,turn,prediction,template,type,pace,length,shared"


def test_buckets_cover_all_ages():
    assert LO[0] == 0.0 and (HI[:-1] == LO[1:]).all() and len(LO) == NUM_BUCKETS
    for i in range(NUM_BUCKETS):
        assert bucket(float(LO[i])) == i == bucket(float(LO[i] + 0.5 * WIDTH[i]))
    assert bucket(1e9) == NUM_BUCKETS - 1 and place(0.0) == 0.0
    middle = np.sqrt(LO[1:] * HI[1:])
    assert [place(float(age)) for age in middle] == pytest.approx(list(range(1, NUM_BUCKETS)))
    assert overlaps(np.array([0.1]), np.array([3.0])).sum() == pytest.approx(2.9)


def test_hazards_are_recovered_from_censored_waits():
    """Blocks that come back after log-normal gaps, half of them forgotten before: events over exposure, not over blocks."""
    rng = np.random.default_rng(0)
    records = Records(20_000, NUM_CLASSES)
    gaps, limits = rng.lognormal(4.0, 1.0, 20_000), rng.exponential(80.0, 20_000)
    for block in range(20_000):
        path = np.array([block])
        records.wait(path, np.array([7]), 0.0)
        if gaps[block] <= limits[block]:
            records.use(path, 1, float(gaps[block]))
        else:
            records.forget(block, float(limits[block]))
    records.catch_up(0.0)
    found = records.events[7] / np.maximum(records.exposure[7], 1e-9)
    from scipy import stats

    survival = stats.lognorm(1.0, scale=np.exp(4.0)).sf
    expected = np.log(survival(LO) / survival(HI)) / WIDTH
    for i in range(bucket(10.0), bucket(150.0)):
        assert found[i] == pytest.approx(expected[i], rel=0.15), i
    # Counted per block, as if a forgotten one had never come back, the hazard would be far too small.
    naive = records.events[7] / (20_000 * WIDTH)
    assert (naive[bucket(40.0) : bucket(150.0)] < 0.6 * expected[bucket(40.0) : bucket(150.0)]).all()


def test_a_block_ends_its_wait_once():
    """Reuse, then forgetting while room is made: the record must not count the block twice."""
    records = Records(4, NUM_CLASSES)
    path = np.arange(4)
    records.wait(path, np.array([3, 3, 5, 5]), 0.0)
    records.use(path, 3, 10.0)
    for block in range(4):
        records.forget(block, 11.0)
    assert records.events[3].sum() == 2 and records.events[5].sum() == 1
    assert records.exposure[3].sum() == pytest.approx(20.0) == records.exposure[5].sum()
    records.catch_up(20.0)
    assert len(records) == 0 and records.exposure.sum() == pytest.approx(40.0)


def test_slots_are_used_again_without_mixing_records_up():
    records = Records(10, NUM_CLASSES)
    for i in range(50):
        records.wait(np.array([i % 10]), np.array([i % 3]), float(i))
        records.use(np.array([i % 10]), 1, float(i) + 0.5)
        records.catch_up(float(i) + 0.6)
    assert len(records) == 0 and records.events.sum() == 50 and records.exposure.sum() == pytest.approx(25.0)


def test_exposure_ends_where_the_curves_do():
    records = Records(1, NUM_CLASSES)
    records.wait(np.array([0]), np.array([0]), 0.0)
    for now_s in (100.0, 5_000.0, 9_000.0, 20_000.0):
        records.catch_up(now_s)
    assert records.exposure[0].sum() == pytest.approx(HI[-1]) and len(records) == 0


def test_cold_curves_fall_with_age():
    """Without any request every class leans on 1/t: the longest unused is worth least, as under LRU."""
    curves = Curves(Records(1, NUM_CLASSES))
    for number in (0, 1234, NUM_CLASSES - 1):
        assert (np.diff(curves.row(number)) < 0).all()


def test_cold_start_is_lru():
    """One class, nothing learned, hits alone counted: the same victims as LRU."""
    workload = small_workload(0)
    params = {"without": ONE_CLASS, "beta": 0.0}
    ranks = make_tree(workload, "sae_g", 60, **params)
    ranks.ranker.records.wait = lambda *args: None
    cold = [block for step in drive(workload, ranks) for block in step.evicted]
    assert cold == evictions(workload, "lru", 60)[0] and len(cold) > 300


def test_unimodal_rows_are_the_least_above():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(50, NUM_BUCKETS))
    found = _unimodal(values)
    assert (found >= values).all()
    for row, before in zip(found, values, strict=True):
        peak = int(before.argmax())
        assert (np.diff(row[: peak + 1]) >= 0).all() and (np.diff(row[peak:]) <= 0).all() and row[peak] == before[peak]


@pytest.mark.parametrize("name", ["sae_g", "sae_g_guard"])
def test_two_ends_hold_the_least_of_all_candidates(name):
    """Law 10: with one peak over age and hits alone counted, no leaf is worth less than the better end of its class."""
    workload = small_workload(11, num_sessions=150)
    chosen = []

    def look(tree, now_s, victim):
        ranker = tree.ranker
        if getattr(ranker, "is_lru", False):
            return
        worths = {b: ranker.score(ranker.heads.class_of(b), b, now_s) for b in ranker.candidates()}
        assert worths[victim] <= min(worths.values()) + 1e-9
        chosen.append(victim)

    for _ in drive(workload, make_tree(workload, name, 120, beta=0.0), look):
        pass
    assert len(chosen) > 300


def test_the_newest_of_a_slow_class_may_go():
    """Two kinds of sessions: one comes back at once, the other after minutes. Under pressure the slow ones go however new."""
    builder = WorkloadBuilder("two paces", 16)
    for i in range(900):
        slow, fast = (i % 100, "slow"), (i % 3, "fast")
        builder.add(Arrival(4.0 * i, f"{slow}", 64), builder.blocks([(slow, k) for k in range(4)]))
        builder.add(Arrival(4.0 * i + 1.0, f"{fast}", 64, is_agent=True), builder.blocks([(fast, k) for k in range(4)]))
    workload = builder.build()
    half = workload.num_requests // 2
    hits = {name: sum(evictions(workload, name, 200)[1][half:]) for name in ("lru", "sae_g")}
    oldest = sum(evictions(workload, "sae_g", 200, two_ends=False)[1][half:])
    assert hits["sae_g"] > hits["lru"] and hits["sae_g"] >= oldest


def test_hit_density_does_not_depend_on_the_unit_of_blocks():
    """Counting one block in eight leaves densities where they are."""
    workload = small_workload(12, num_sessions=200)
    logs = []
    for sample in (1, 8):
        tree = make_tree(workload, "sae_g", 300, sample=sample)
        for _ in drive(workload, tree):
            pass
        ranker = tree.ranker
        ranker.curves.refresh()
        numbers = np.argsort(-ranker.records.num_requests)[:5]
        logs.append(np.array([ranker.curves.row(int(number)) for number in sorted(numbers.tolist())]))
    assert np.abs(logs[0] - logs[1]).mean() < 0.7


def test_the_guard_follows_the_better_directory():
    """Where SAE-G is made worthless, the guard turns to LRU and comes within a little of it."""
    workload = small_workload(13, num_sessions=150)
    params = {"without": ONE_CLASS, "look_ahead": "hazard"}
    tree = make_tree(workload, "sae_g_guard", 60, margin=0.0005, guard_half_life=50, **params)
    modes = [tree.ranker.is_lru for _ in drive(workload, tree)]
    assert any(modes) or sum(evictions(workload, "sae_g", 60, **params)[1]) >= sum(evictions(workload, "lru", 60)[1])


@pytest.mark.parametrize("params", [{"without": "colour"}, {"turn_buckets": 3}, {"half_life": 0}, {"sample": 0}])
def test_bad_settings_are_refused(params):
    with pytest.raises(BadRequest):
        make_tree(small_workload(0, num_sessions=3), "sae_g", 10, **params)


def test_every_class_has_words():
    for number in range(0, NUM_CLASSES, 37):
        assert in_words(number)
    assert in_words(NUM_CLASSES - 1).startswith("shared system text")


def test_silent_sessions_are_forgotten():
    classes = Classifier()
    for request in small_workload(1).requests():
        classes.see(request)
    classes.forget(1e9)
    assert not classes._paces


def test_all_settings_are_named():
    assert set(POLICIES.create("sae_g").params()) >= {"beta", "half_life", "ghost_ratio", "two_ends", "look_ahead", "without"}
