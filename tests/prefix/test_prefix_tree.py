"""The tree apart from any policy: leases, pins, time to live, ghosts, names of blocks as they arrive."""

import numpy as np
import pytest
from prefix_worlds import small_workload

from engine.errors import BadRequest
from engine.prefix.blocks import BlockColumns, capacity_in_blocks, num_leading
from engine.prefix.ghosts import GhostList
from engine.prefix.names import BlockNames
from engine.prefix.policies import POLICIES
from engine.prefix.request import CacheRequest
from engine.prefix.tree import PrefixTree

CHAIN = 12


def chain_tree(capacity=6, policy="lru", **options):
    """Returns a tree over two chains of twelve blocks that share their first four."""
    parent = np.array([-1, *range(11), 3, *range(12, 19)], np.int32)
    depth = np.array([*range(12), *range(4, 12)], np.int32)
    tree = PrefixTree(BlockColumns(parent, depth, np.ones(20)), capacity, POLICIES.create(policy), **options)
    return tree, np.arange(12, dtype=np.int32), np.array([0, 1, 2, 3, *range(12, 20)], np.int32)


def asked(path, time_s=0.0, session=0, num_prompt=None):
    return CacheRequest(0, time_s, session, 0, False, False, -1.0, 16 * len(path), path, len(path) if num_prompt is None else num_prompt)


def serve(tree, path, time_s=0.0, **change):
    lease = tree.begin(asked(path, time_s, **change))
    tree.extend(lease)
    tree.end(lease)
    tree.check_integrity()
    return lease


def test_a_hit_ends_at_the_first_missing_block():
    tree, first, second = chain_tree(20)
    assert serve(tree, first[:6]).num_hits == 0
    assert serve(tree, second[:8]).num_hits == 4
    assert serve(tree, first).num_hits == 6
    assert tree.size == 16


def test_answer_blocks_are_no_hits():
    tree, first, _ = chain_tree(20)
    serve(tree, first[:8], num_prompt=5)
    lease = serve(tree, first[:8], num_prompt=5)
    assert lease.num_hits == 5 and lease.num_cached == 8
    assert tree.columns.hits[first[:8]].tolist() == [1] * 5 + [0] * 3


def test_a_prompt_then_its_answer_in_two_steps():
    tree, first, _ = chain_tree(20)
    serve(tree, first[:3])
    lease = tree.begin(asked(first[:8], num_prompt=5))
    assert tree.extend(lease, 5).num_cached == 5
    tree.check_integrity()
    assert tree.extend(lease, 8).num_cached == 8
    tree.end(lease)
    tree.end(lease)
    tree.check_integrity()
    assert tree.columns.hits[first[:3]].tolist() == [1, 1, 1] and not tree.columns.num_refs.any()


def test_a_cancelled_request_leaves_no_reference():
    tree, first, second = chain_tree(6)
    serve(tree, first[:5])
    lease = tree.begin(asked(first))
    tree.end(lease)
    assert not tree.columns.num_refs.any()
    lease = tree.begin(asked(first))
    tree.extend(lease, 6)
    tree.end(lease)
    tree.check_integrity()
    assert serve(tree, second).num_cached == 6


def test_room_is_made_only_from_what_nobody_uses():
    tree, first, second = chain_tree(6)
    held = tree.begin(asked(first[:5]))
    tree.extend(held)
    other = tree.begin(asked(second))
    admission = tree.extend(other)
    assert admission.num_cached == 5 and not admission.evicted
    tree.end(held)
    tree.end(other)
    tree.check_integrity()
    assert serve(tree, second).num_cached == 6 and not tree.columns.cached[4]


def test_pins_keep_blocks_until_they_end():
    tree, first, second = chain_tree(6)
    tree.pin(first[:4], until_s=100.0)
    serve(tree, first[:6])
    serve(tree, second, 50.0)
    assert tree.columns.cached[first[:4]].all() and not tree.columns.cached[[4, 5]].any()
    tree.pin(second[:6], until_s=60.0)
    serve(tree, first[:6], 70.0)
    assert tree.columns.num_pins[second[4]] == 0 and tree.columns.cached[[4, 5]].all()
    serve(tree, second, 200.0)
    assert not tree.columns.num_pins.any()
    tree.check_integrity()


def test_pinned_blocks_are_taken_off_by_hand():
    tree, first, _ = chain_tree(6)
    serve(tree, first[:6])
    tree.pin(first[:6])
    tree.pin(first[:6])
    tree.unpin(first[:6])
    assert not tree.columns.leaf.any()
    tree.unpin(first[:6])
    assert tree.columns.leaf.sum() == 1
    with pytest.raises(BadRequest, match="not pinned"):
        tree.unpin(first[:6])


def test_more_pins_than_room_are_refused():
    tree, first, second = chain_tree(6)
    tree.pin(first[:5])
    with pytest.raises(BadRequest, match="cache of 6"):
        tree.pin(second[:7])
    tree.check_integrity()


def test_blocks_expire_from_the_leaves_up():
    tree, first, second = chain_tree(20, ttl_s=10.0)
    serve(tree, first[:6], 0.0)
    serve(tree, second[:6], 8.0)
    lease = tree.begin(asked(second[:6], 12.0))
    assert lease.expired == [5, 4] and lease.num_hits == 6
    tree.extend(lease)
    tree.end(lease)
    lease = tree.begin(asked(first[:6], 30.0))
    assert lease.num_hits == 0 and len(lease.expired) == 6 and tree.size == 0


def test_ghosts_are_bounded_and_leave_when_cached_again():
    columns = BlockColumns(np.full(8, -1), np.zeros(8), np.zeros(8))
    ghosts = GhostList(columns, 3)
    assert [ghosts.add(block) for block in range(5)] == [None, None, None, 0, 1]
    assert ghosts.leave(np.array([2, 3, 7])).tolist() == [True, True, False]
    assert len(ghosts) == 1 and np.flatnonzero(columns.ghost).tolist() == [4]
    assert GhostList(columns, 0).add(6) == 6 and not columns.ghost[6]


@pytest.mark.parametrize("capacity", [0, -3])
def test_a_cache_holds_at_least_one_block(capacity):
    with pytest.raises(BadRequest):
        chain_tree(capacity)


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan"), float("inf"), 0.001, "many"])
def test_bad_capacities_are_one_sentence(capacity):
    with pytest.raises(BadRequest) as error:
        capacity_in_blocks(capacity, 100)
    assert str(error.value).count(". ") == 0


def test_capacities_are_shares_or_blocks():
    assert (capacity_in_blocks(0.05, 1000), capacity_in_blocks(1, 1000), capacity_in_blocks(64, 1000)) == (50, 1, 64)


@pytest.mark.parametrize("flags", [[], [True], [False], [True, True, False, True], [True] * 5])
def test_leading_flags_are_counted(flags):
    expected = flags.index(False) if False in flags else len(flags)
    assert num_leading(np.array(flags, bool)) == expected


@pytest.mark.parametrize("policy", [name for name in POLICIES.names() if not POLICIES.get(name).needs_future])
def test_names_run_for_good_in_columns_of_fixed_size(policy):
    """Thousands of distinct blocks through a few hundred rows: rows are used again, and nothing is mixed up."""
    workload = small_workload(3, num_sessions=110)
    longest = int(np.diff(workload.starts).max())
    capacity = 60
    columns = BlockColumns.empty(12 * capacity + 2 * longest)
    names, tree = BlockNames(columns), PrefixTree(columns, capacity, POLICIES.create(policy))
    twin = PrefixTree(workload.columns(), capacity, POLICIES.create(policy))
    assert workload.num_blocks > 2 * columns.num_blocks
    for request in workload.requests():
        # A block's own number stands for what it holds.
        path = names.path(request.path.tolist(), workload.kind[request.path].tolist())
        leases = [tree.begin(request._replace(path=path)), twin.begin(request)]
        for one, lease in zip((tree, twin), leases, strict=True):
            one.extend(lease)
            one.end(lease)
        # LHD draws from its leaves, whose order depends on the numbers; the guard may need more rows than its twin has blocks.
        if policy not in ("lhd", "sae_g_guard"):
            assert leases[0].num_hits == leases[1].num_hits, request.index
    tree.check_integrity()
    assert len(names) <= columns.num_blocks


def test_a_prompt_beyond_all_rows_is_one_sentence():
    names = BlockNames(BlockColumns.empty(5))
    assert names.path("abc").tolist() == names.path("abc").tolist()
    with pytest.raises(BadRequest, match="rows"):
        names.path("abcdefgh")
