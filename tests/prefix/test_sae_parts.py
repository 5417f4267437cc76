"""The parts of SAECache by themselves: survival, weights of types and queues, position decay, gaps, classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_worlds import drive, make_tree, small_workload
from scipy import stats

from engine.prefix.blocks import Queue, TokenType
from engine.prefix.policies.saecache import CHAT, FIRST, NUM_CLASSES, STRUCTURAL
from engine.prefix.sae.gaps import LogNormalGaps, log_normal_tail
from engine.prefix.sae.position import PositionDecay
from engine.prefix.sae.queue_weights import QueueWeights
from engine.prefix.sae.token_weights import EVERY_EVICTIONS, TokenWeights


@given(st.floats(-8.0, 60.0))
@settings(deadline=None)
def test_log_survival_agrees_with_scipy(z):
    assert log_normal_tail(z) == pytest.approx(stats.norm.logsf(z), rel=1e-7, abs=1e-12)


def test_token_weights_follow_their_rule():
    weights = TokenWeights(learns=True)
    kinds = np.array([TokenType.SYSTEM] * 8 + [TokenType.USER] * 2, np.uint8)
    weights.see(kinds, num_hits=8, missed=np.full(5, TokenType.USER, np.uint8))
    weights.evict(np.full(EVERY_EVICTIONS, TokenType.USER, np.uint8))
    weights.update()
    # target = 1 + 5 r_miss + 2 r_reuse, a tenth of the way from 1.
    assert weights.values[TokenType.SYSTEM] == pytest.approx(1.0 + 0.1 * 2.0)
    assert weights.values[TokenType.USER] == pytest.approx(1.0 + 0.1 * 5.0 * 5 / EVERY_EVICTIONS)
    assert weights.values[TokenType.COT] == pytest.approx(1.0)


def test_queue_weights_follow_their_rule():
    weights = QueueWeights(temperature=0.5, learns=True)
    weights.see(np.array([Queue.CHAT] * 10 + [Queue.AGENT] * 30, np.uint8))
    weights.update([0, 0, 10, 10])
    # E = 1 and 3, mean 2, ratios 0.25 and 2.25, clip at mean +- 2 sd leaves both.
    assert weights.values[Queue.CHAT] == pytest.approx(1.0 + 0.1 * (0.25 - 1.0))
    assert weights.values[Queue.AGENT] == pytest.approx(1.0 + 0.1 * (2.25 - 1.0))
    assert weights.values[Queue.STRUCTURAL] == 1.0


def test_position_decay_finds_the_shape_of_reuse():
    """Hits that end at 30 % of the prompt want a small gamma: what comes later is soon worth little."""
    learned = {}
    for share in (0.3, 0.95):
        decay = PositionDecay(learns=True)
        for i in range(2_000):
            decay.see(100, int(100 * share), is_structural=True)
            if i % 10 == 0:
                decay.update()
        learned[share] = decay.gamma
    assert learned[0.3] < 0.7 < 3.0 < learned[0.95]


def test_gaps_outside_their_bounds_are_dropped():
    gaps = LogNormalGaps(1.0, 1.0, learns=True)
    for gap_s in (0.0, 0.05, 4_000.0, 1e9):
        for _ in range(50):
            gaps.add(gap_s)
    assert (gaps.mu, gaps.sigma) == (1.0, 1.0)


def test_classes_cover_queues_types_and_bands():
    workload = small_workload(10)
    tree = make_tree(workload, "saecache", 300)
    seen = set()
    for _ in drive(workload, tree):
        seen |= {tree.ranker.heads.class_of(b) for b in tree.ranker.candidates()}
    assert FIRST in seen and any(CHAT <= n < STRUCTURAL for n in seen) and any(n >= STRUCTURAL for n in seen)
    assert max(seen) < NUM_CLASSES
