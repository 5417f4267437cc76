"""The laws every policy keeps, as one matrix; a new file in `engine/prefix/policies/` is in it by existing."""

import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from prefix_worlds import BLOCK, CAPACITIES, drive, evictions, make_tree, overlapping, plain_lru, plain_min, small_workload

from engine.prefix.cost import PUBLISHED_8B
from engine.prefix.judge import request_log
from engine.prefix.policies import POLICIES
from engine.prefix.replay import replay
from engine.prefix.request import CacheRequest
from engine.prefix.uses import block_uses

ROOT = Path(__file__).resolve().parents[2]
NAMES = POLICIES.names()
REAL = [name for name in NAMES if not POLICIES.get(name).needs_future]


@pytest.fixture(scope="module")
def workload():
    return small_workload()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("capacity", CAPACITIES)
def test_structure_holds_after_every_request(workload, name, capacity):
    """Laws 1, 3, 5, 15: size, prefix closure, counts, bounded ghosts; candidates are exactly the unreferenced leaves."""
    tree = make_tree(workload, name, capacity)
    for step in drive(workload, tree):
        tree.check_integrity()
        assert tree.size <= capacity and len(tree.ghosts) <= tree.ghosts.capacity
        assert not tree.columns.num_refs.any(), step.request.index


@pytest.mark.parametrize("name", NAMES)
def test_no_block_in_use_or_pinned_is_evicted(workload, name):
    """Law 2, with requests that overlap: one is cancelled half way now and then."""
    tree = make_tree(workload, name, 150)
    pinned = next(iter(workload.requests())).path[:3]
    tree.pin(pinned)
    leases, held, was_cached = {}, {}, np.zeros(3, bool)
    for what, request in overlapping(workload):
        if what == "end":
            tree.end(leases.pop(request.index))
            held.pop(request.index)
            continue
        lease = leases[request.index] = tree.begin(request)
        held[request.index] = set(request.path[: lease.num_cached].tolist())
        protected = set().union(*held.values()) | set(pinned.tolist())
        admission = tree.extend(lease, request.num_prompt if request.index % 5 else lease.num_cached)
        assert not protected & set(admission.evicted)
        held[request.index] = set(request.path[: lease.num_cached].tolist())
        if request.index % 7 == 0:
            tree.end(lease)
            held[request.index] = set()
        was_cached |= tree.columns.cached[pinned]
        assert (tree.columns.cached[pinned] == was_cached).all()
        tree.check_integrity()
    assert not tree.columns.num_refs.any()
    assert was_cached.any() and tree.num_evicted > 100


@pytest.mark.parametrize("name", NAMES)
def test_requests_may_be_looked_up_before_others_are_inserted(workload, name):
    """Pairs of requests in turn: both begin, then both insert, often the very same blocks."""
    tree = make_tree(workload, name, 60)
    requests = list(workload.requests())
    for first, second in zip(requests[::2], requests[1::2], strict=False):
        second = second if first.index % 3 else first._replace(session=second.session)
        leases = [tree.begin(first), tree.begin(second)]
        for lease in leases:
            admission = tree.extend(lease)
            assert admission.num_found <= admission.num_cached
            tree.check_integrity()
        if not first.index % 3:
            assert leases[1].num_cached == leases[0].num_cached
        for lease in leases:
            tree.end(lease)
        tree.check_integrity()


@pytest.mark.parametrize("name", NAMES)
def test_hits_are_the_longest_cached_prefix(workload, name):
    """Law 4, against a set of cached blocks kept from what the tree says it inserted and evicted."""
    cached = set()
    for step in drive(workload, make_tree(workload, name, 40)):
        path = step.request.path.tolist()
        found = next((i for i, block in enumerate(path) if block not in cached), len(path))
        assert step.num_hits == min(found, step.request.num_prompt)
        cached = (cached - set(step.evicted)) | set(path[: step.num_cached])
        assert len(cached) <= 40


@pytest.mark.parametrize("name", NAMES)
def test_hits_and_misses_add_up(workload, name):
    """Law 5: what was hit and what was missed, by cause, is the prompt."""
    uses = block_uses(workload)
    log = request_log(workload, uses, replay(workload, POLICIES.create(name), 40, uses), PUBLISHED_8B)
    assert (log.hit_tokens + log.missed_tokens.sum(1) == log.prompt_tokens).all()
    assert (log.hit_blocks <= log.prompt_blocks).all() and log.hit_blocks.sum() > 0


def test_lru_on_leaves_is_plain_lru(workload):
    """Law 6."""
    for capacity in CAPACITIES:
        assert evictions(workload, "lru", capacity) == plain_lru(workload, capacity)


def test_a_larger_lru_cache_never_loses(workload):
    """Law 6, the stack property: request by request."""
    longest = int(np.diff(workload.starts).max())
    hits = [np.array(evictions(workload, "lru", capacity)[1]) for capacity in range(longest, 6 * longest, 17)]
    for smaller, larger in itertools.pairwise(hits):
        assert (larger >= smaller).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", (0, 1, 2))
def test_the_limit_finds_no_fewer_blocks(name, seed):
    """Law 7."""
    workload = small_workload(seed, num_sessions=40)
    for capacity in CAPACITIES:
        assert sum(evictions(workload, "min", capacity)[1]) >= sum(evictions(workload, name, capacity)[1])


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_the_limit_is_the_farthest_next_use(capacity):
    workload = small_workload(3, num_sessions=25)
    assert sum(evictions(workload, "min", capacity)[1]) == sum(plain_min(workload, capacity))


@pytest.mark.parametrize("name", NAMES)
def test_an_endless_cache_finds_all_that_was_seen(workload, name):
    """Law 8."""
    seen, expected = set(), []
    for request in workload.requests():
        path = request.path.tolist()
        expected.append(next((i for i, block in enumerate(path[: request.num_prompt]) if block not in seen), request.num_prompt))
        seen |= set(path)
    evicted, hits = evictions(workload, name, workload.num_blocks)
    assert hits == expected and not evicted


@pytest.mark.parametrize("name", NAMES)
def test_the_same_run_twice_evicts_the_same(workload, name):
    """Law 11."""
    assert evictions(workload, name, 40) == evictions(workload, name, 40)


def test_runs_do_not_depend_on_the_order_of_hashes():
    """Law 11, across processes."""
    code = (
        "import hashlib, sys; sys.path[:0] = ['tests/prefix']\n"
        "from prefix_worlds import evictions, small_workload\n"
        "from engine.prefix.policies import POLICIES\n"
        "w = small_workload(1, num_sessions=30)\n"
        "print(hashlib.sha256(repr([evictions(w, n, 40) for n in POLICIES.names()]).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1 and len(found.pop().strip()) == hashlib.sha256().digest_size * 2


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_larger_than_the_cache_is_cached_as_far_as_it_goes(workload, name):
    """Law 16."""
    longest = max(workload.requests(), key=lambda request: len(request.path))
    capacity = len(longest.path) // 2
    tree = make_tree(workload, name, capacity)
    for _ in range(2):
        lease = tree.begin(longest)
        admission = tree.extend(lease)
        tree.end(lease)
        assert admission.num_cached == capacity and not admission.evicted
        tree.check_integrity()
    assert lease.num_hits == min(capacity, longest.num_prompt)


@pytest.mark.parametrize("name", REAL)
def test_a_policy_reads_no_future(workload, name):
    """Law 20: a log cut short is served as its beginning was."""
    half = [request for request in workload.requests() if request.index < workload.num_requests // 2]
    whole = [(step.num_hits, step.evicted) for step in drive(workload, make_tree(workload, name, 40))]
    tree = make_tree(workload, name, 40)
    for request, expected in zip(half, whole, strict=False):
        lease = tree.begin(request)
        admission = tree.extend(lease)
        tree.end(lease)
        assert (lease.num_hits, admission.evicted) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_victim_is_named_before_it_leaves_and_explained(workload, name):
    """Peeking changes nothing, and every victim has a reason in one sentence."""
    seen = []

    def look(tree, now_s, victim):
        if len(seen) < 200:
            assert type(tree.ranker).victim(tree.ranker, now_s) == victim
            reason = tree.ranker.explain(victim, now_s)
            assert reason.sentence.startswith("evicted: ") and reason.sentence.endswith(".") and len(reason.sentence) < 500
            assert all(np.isfinite(value) for value in reason.factors.values())
            seen.append(victim)

    evicted = [block for step in drive(workload, make_tree(workload, name, 40), look) for block in step.evicted]
    assert len(seen) == 200 and set(evicted) >= set(seen[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_odd_times_do_no_harm(workload, name):
    """Law 12: all at once, and after a very long time; what was learned stays finite."""
    tree = make_tree(workload, name, 30)
    for request in workload.requests():
        time_s = 0.0 if request.index < workload.num_requests // 2 else 1e9 * (request.index % 2 + request.index)
        moved = request._replace(time_s=time_s)
        lease = tree.begin(moved)
        tree.extend(lease)
        tree.end(lease)
        assert all(np.isfinite(value) for value in tree.ranker.weights().values())
    tree.check_integrity()


@pytest.mark.parametrize("name", REAL)
def test_time_to_live_ends_what_nobody_touches(workload, name):
    tree = make_tree(workload, name, 150, ttl_s=60.0)
    for request in workload.requests():
        lease = tree.begin(request)
        cached = np.flatnonzero(tree.columns.cached & (tree.columns.num_refs == 0))
        assert (tree.columns.last_s[cached] >= request.time_s - 60.0).all()
        tree.extend(lease)
        tree.end(lease)
        tree.check_integrity()


@pytest.mark.parametrize("name", REAL)
def test_requests_without_any_block_are_served(workload, name):
    tree = make_tree(workload, name, 30)
    empty = CacheRequest(0, 1.0, 0, 0, False, False, -1.0, BLOCK - 1, np.zeros(0, np.int32), 0)
    for _ in range(3):
        lease = tree.begin(empty)
        assert tree.extend(lease).num_cached == 0 and lease.num_hits == 0
        tree.end(lease)
    tree.check_integrity()
