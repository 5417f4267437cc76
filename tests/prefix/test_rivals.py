"""What each rival counts, against the same thing worked out from its definition."""

import math

import numpy as np
import pytest
from prefix_worlds import drive, evictions, make_tree, small_workload

from engine.prefix.blocks import BlockColumns
from engine.prefix.policies import POLICIES
from engine.prefix.request import CacheRequest
from engine.prefix.tree import PrefixTree

CAPACITY = 60


@pytest.fixture(scope="module")
def workload():
    return small_workload(21)


def two_steps(workload, name, check):
    """Serves prompts first and answers after them, as a server does."""
    tree = make_tree(workload, name, CAPACITY)
    for request in workload.requests():
        lease = tree.begin(request)
        tree.extend(lease, request.num_prompt)
        tree.check_integrity()
        tree.extend(lease)
        tree.end(lease)
        tree.check_integrity()
        check(tree)
    return tree


@pytest.mark.parametrize("name", POLICIES.names())
def test_an_answer_may_come_after_its_prompt(workload, name):
    two_steps(workload, name, lambda tree: None)


def test_s3_fifo_counts_its_small_queue(workload):
    def check(tree):
        ranker = tree.ranker
        assert ranker._num_small == (tree.columns.cached & ~ranker._in_main).sum()

    assert two_steps(workload, "s3_fifo", check).ranker._in_main.any()


def test_saecache_counts_what_its_queues_hold(workload):
    def check(tree):
        held = np.bincount(tree.columns.queue[tree.columns.cached], minlength=4)
        assert tree.ranker.num_held() == held.tolist()

    two_steps(workload, "saecache", check)


def test_sae_g_counts_every_waiting_block_once(workload):
    def check(tree):
        records, columns = tree.ranker.records, tree.columns
        waiting = [records._slot(code) for code in records._record.tolist()]
        open_slots = {slot for slot, number in enumerate(records._number) if number >= 0}
        counts = {slot: records._count[slot] for slot in open_slots}
        found = {slot: 0 for slot in open_slots}
        for block, slot in enumerate(waiting):
            if slot is not None:
                found[slot] += 1
                assert columns.cached[block] or columns.ghost[block]
        assert found == counts

    two_steps(workload, "sae_g", check)


def flat_tree(name, capacity, num=8, **params):
    """Returns a tree over blocks that each are a prompt of their own."""
    columns = BlockColumns(np.full(num, -1), np.zeros(num), np.ones(num))
    return PrefixTree(columns, capacity, POLICIES.create(name, **params))


def ask(tree, block, time_s, session=0, follow_up=-1.0, tokens=16):
    request = CacheRequest(0, time_s, session, 0, False, False, follow_up, tokens, np.array([block], np.int32), 1)
    lease = tree.begin(request)
    evicted = tree.extend(lease).evicted
    tree.end(lease)
    return evicted


def serve(name, blocks, capacity=3, **params):
    """Returns what leaves, one list a request, where block numbers are asked for one after another."""
    tree = flat_tree(name, capacity, **params)
    return [ask(tree, block, float(i), session=block) for i, block in enumerate(blocks)]


def test_rules_of_the_simple_ones():
    asked = [0, 1, 2, 0, 3]
    assert serve("lru", asked)[-1] == [1]
    assert serve("fifo", asked)[-1] == [0]
    assert serve("lfu", [0, 1, 2, 0, 2, 1, 1, 3])[-1] == [0]
    # 1 was never hit, though it is younger than 0 and 2.
    assert serve("slru", [0, 2, 0, 2, 1, 3])[-1] == [1]


def test_gdsf_lets_frequency_fade():
    tree = flat_tree("gdsf", 2)
    for i in range(3):
        ask(tree, 0, float(i))
    left = [ask(tree, 1 + i % 6, 3.0 + i) for i in range(8)]
    # H of block 0 is 3; each newcomer enters at the last victim's H plus 1 until it is worth more.
    assert [0] in left and left.index([0]) >= 2


def test_lpc_orders_by_faded_predictions():
    """ln p - 0.01 idle: a hopeful session that is old against a hopeless one that is young."""
    for gap_s, victim in ((50.0, 1), (150.0, 0)):
        tree = flat_tree("lpc", 2)
        ask(tree, 0, 0.0, session=0, follow_up=0.9)
        ask(tree, 1, gap_s, session=1, follow_up=0.3)
        expected = 0 if math.log(0.9) - 0.01 * gap_s < math.log(0.3) else 1
        assert ask(tree, 2, gap_s + 1.0, session=2, follow_up=0.5) == [victim] == [expected]


def test_lpc_keeps_the_best_of_those_who_share():
    tree = flat_tree("lpc", 2)
    ask(tree, 0, 0.0, session=0, follow_up=0.9)
    ask(tree, 0, 1.0, session=1, follow_up=0.05)
    ask(tree, 1, 2.0, session=2, follow_up=0.5)
    assert ask(tree, 2, 3.0, session=3, follow_up=0.5) == [1]


def test_t_lru_gives_up_what_a_request_can_afford(workload):
    """Within the budget everything goes first: with a budget beyond all prompts it is LRU."""
    assert evictions(workload, "t_lru", CAPACITY, budget_tokens=10**9) == evictions(workload, "lru", CAPACITY)
    assert evictions(workload, "t_lru", CAPACITY, budget_tokens=250) != evictions(workload, "lru", CAPACITY)


def test_wa_learns_how_soon_a_category_returns():
    tree = flat_tree("wa", 6)
    for i in range(400):
        ask(tree, i % 4, 10.0 * i, session=i)
    assert tree.ranker._mean_s[0] == pytest.approx(40.0)


def test_lhd_densities_follow_hits():
    """Blocks that come back after 8 s are worth most until then, and little after."""
    tree = flat_tree("lhd", 6)
    for i in range(1_200):
        ask(tree, i % 4, 2.0 * i, session=i)
    worths = tree.ranker._density[3]
    assert worths[:9].min() > 10 * worths[15]


def test_lhd_depends_on_nothing_but_its_seed(workload):
    assert evictions(workload, "lhd", CAPACITY, seed=1) == evictions(workload, "lhd", CAPACITY, seed=1)


def test_unicache_forgets_types_and_idle_time(workload):
    """Its score is alpha s: in STRUCTURAL it does not depend on the moment."""
    tree = make_tree(workload, "unicache", CAPACITY)
    for _ in drive(workload, tree):
        pass
    ranker = tree.ranker
    structural = [block for block in ranker.candidates() if ranker.heads.class_of(block) >= 11]
    for block in structural:
        number = ranker.heads.class_of(block)
        assert ranker.score(number, block, 1e4) == ranker.score(number, block, 1e6)
    assert not any(ranker.types.logs)
