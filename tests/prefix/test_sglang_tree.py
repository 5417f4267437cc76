"""SGLang's own radix tree on our workloads: an oracle for LRU, and a home for our policies."""

import numpy as np
import pytest
from prefix_worlds import CAPACITIES, small_workload

from engine.errors import BackendUnavailable, BadRequest, Cancelled, UnknownName
from engine.prefix import sglang_tree
from engine.prefix.lab import ReplayLab, lab_names, lab_policy
from engine.prefix.policies import POLICIES
from engine.prefix.replay import replay
from engine.prefix.sglang_tree import InSGLang
from engine.prefix.workloads.generate import generate

pytestmark = pytest.mark.skipif(not sglang_tree.is_installed(), reason="sglang is not installed")


def assert_same(ours, theirs):
    assert theirs.num_hits.tolist() == ours.num_hits.tolist()
    assert theirs.num_inserted.tolist() == ours.num_inserted.tolist()
    assert theirs.evicted.tolist() == ours.evicted.tolist() and theirs.evicted_at.tolist() == ours.evicted_at.tolist()


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_sglangs_lru_is_ours_block_by_block(seed, capacity):
    workload = small_workload(seed)
    ours, theirs = replay(workload, POLICIES.create("lru"), capacity), InSGLang().replay(workload, capacity)
    assert_same(ours, theirs)
    assert theirs.evicted_hits.tolist() == ours.evicted_hits.tolist() and len(theirs.evicted) > 100


def test_the_same_hit_tokens_on_a_generated_load_with_pages_of_16():
    lab = ReplayLab(generate("tool_use", 0), 0, 0.77)
    capacity = lab.capacity(0.05)
    ours, theirs = (lab.run(lab_policy(name), capacity) for name in ("lru", "sglang_lru"))
    assert theirs.policy == "sglang_lru" and theirs.block_tokens == 16
    assert theirs.requests.hit_tokens.tolist() == ours.requests.hit_tokens.tolist() and theirs.requests.hit_tokens.any()
    assert theirs.evictions.regret.tolist() == ours.evictions.regret.tolist()
    assert not len(theirs.snapshots.request)


@pytest.mark.parametrize("name", ["saecache", "sae_g", "lpc"])
def test_our_policies_run_inside_sglangs_tree(name):
    workload, capacity = small_workload(2), 60
    assert_same(replay(workload, POLICIES.create(name), capacity), InSGLang.named(f"sglang_{name}").replay(workload, capacity))


def test_whole_tails_leave_as_one_and_cost_hits():
    workload = small_workload(0)
    pages, tails = (InSGLang(whole_tails=whole).replay(workload, 60) for whole in (False, True))
    assert tails.num_hits.sum() < pages.num_hits.sum()
    held = np.cumsum(tails.num_inserted) - np.cumsum(np.bincount(tails.evicted_at, minlength=workload.num_requests))
    assert held.max() <= 60 and held.min() >= 0


def test_it_is_in_the_lab_by_name_and_says_what_it_cannot(monkeypatch):
    assert {"sglang_lru", "sglang_saecache"} <= set(lab_names())
    with pytest.raises(UnknownName, match="lru"):
        lab_policy("sglang_best")
    with pytest.raises(BadRequest, match="'min' so; choose"):
        lab_policy("sglang_min")
    with pytest.raises(Cancelled):
        InSGLang().replay(small_workload(0), 7, lambda share: False)
    monkeypatch.setattr(sglang_tree, "is_installed", lambda: False)
    with pytest.raises(BackendUnavailable, match="sglang is not installed here"):
        InSGLang().replay(small_workload(0), 7)
