"""Small workloads and a driver that checks a tree while it serves them; oracles written out step by step."""

import heapq
from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from engine.prefix.policies import POLICIES
from engine.prefix.policy import Future
from engine.prefix.replay import replay
from engine.prefix.tree import PrefixTree
from engine.prefix.uses import block_uses, future
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.sessions import KINDS
from engine.prefix.workloads.stream import Span, Stream

BLOCK = 4
# What small caches need of a policy that remembers: nothing but its defaults.
CAPACITIES = (7, 40, 150)


def small_workload(seed=0, num_sessions=60, kinds=("chat", "agent", "template", "single", "thinking"), mean_gap_s=20.0, shrink=24):
    """Returns a few hundred requests of all kinds of sessions, their lengths divided so that blocks are few."""
    rng = np.random.default_rng(seed)
    builder = WorkloadBuilder(f"small {seed}", BLOCK)
    start_s = 0.0
    for number in range(num_sessions):
        session = KINDS[kinds[int(rng.integers(len(kinds)))]](rng)
        stream = Stream(builder, number, session.template, session.template_tokens // shrink)
        start_s += rng.exponential(mean_gap_s)
        time_s = start_s
        for turn in session.turns[:8]:
            time_s += turn.gap_s
            prompt = stream.append([Span(span.kind, 1 + span.num_tokens // shrink) for span in turn.asks])
            num_tokens, answers = stream.num_tokens, [Span(span.kind, 1 + span.num_tokens // shrink) for span in turn.answers]
            path = stream.peek([Span(4, 1 + turn.thinks // shrink), *answers]) if turn.thinks else stream.append(answers)
            arrival = Arrival(time_s, number, num_tokens, session.is_agent, turn.waits_for_tool)
            builder.add(arrival, path, len(prompt))
            if turn.thinks:
                stream.append(answers)
    return builder.build().predicted(0.8, seed)


class Step(NamedTuple):
    """One request of a driven run."""

    request: object
    num_hits: int
    num_cached: int
    evicted: list


def future_of(workload) -> Future:
    return future(workload, block_uses(workload))


def make_tree(workload, name, capacity, ttl_s=None, **params):
    policy = POLICIES.create(name, **params)
    return PrefixTree(workload.columns(), capacity, policy, ttl_s, future_of(workload) if policy.needs_future else None)


def drive(workload, tree, before_eviction=None):
    """Yields a step for every request; `before_eviction(tree, now_s, victim)` is called for every block about to leave."""
    if before_eviction is not None:
        inner = tree.ranker.victim

        def victim(now_s):
            found = inner(now_s)
            if found >= 0:
                before_eviction(tree, now_s, found)
            return found

        tree.ranker.victim = victim
    for request in workload.requests():
        lease = tree.begin(request)
        admission = tree.extend(lease)
        tree.end(lease)
        yield Step(request, lease.num_hits, admission.num_cached, admission.evicted)


def evictions(workload, name, capacity, **params):
    """Returns the blocks a policy evicts, in order, and the hits of every request."""
    policy = POLICIES.create(name, **params)
    uses = block_uses(workload) if policy.needs_future else None
    done = replay(workload, policy, capacity, uses)
    return done.evicted.tolist(), done.num_hits.tolist()


def plain_lru(workload, capacity):
    """Returns evicted blocks and hits of LRU over blocks as a list, tails first: no tree, no leaves."""
    order, evicted, hits = OrderedDict(), [], []
    for request in workload.requests():
        path = request.path.tolist()
        held = 0
        while held < len(path) and path[held] in order:
            held += 1
        hits.append(min(held, request.num_prompt))
        # What is in use goes to the young end first, so that it is never the oldest.
        for block in path[:held][::-1]:
            order.move_to_end(block)
        room = capacity
        for block in path[held:]:
            if len(order) >= capacity:
                oldest = next(iter(order))
                if oldest in path:
                    break
                del order[oldest]
                evicted.append(oldest)
            order[block] = None
            held += 1
        assert len(order) <= room
        for block in path[:held][::-1]:
            order.move_to_end(block)
    return evicted, hits


def plain_min(workload, capacity):
    """Returns hits of the farthest-next-use rule with bypass, next uses found by scanning."""
    requests = [(request.path.tolist(), request.num_prompt) for request in workload.requests()]
    coming: dict[int, list[int]] = {}
    for i, (path, num_prompt) in enumerate(requests):
        for block in path[:num_prompt]:
            coming.setdefault(block, []).append(i)
    cached, hits = set(), []
    for i, (path, num_prompt) in enumerate(requests):
        held = 0
        while held < len(path) and path[held] in cached:
            held += 1
        hits.append(min(held, num_prompt))

        def following(block, i=i):
            return next((at for at in coming.get(block, []) if at > i), len(requests))

        for block in path[held:]:
            if len(cached) >= capacity:
                parents = {int(workload.parent[b]) for b in cached}
                leaves = [b for b in cached if b not in parents and b not in path]
                if not leaves:
                    break
                worst = max(leaves, key=following)
                if following(block) >= following(worst):
                    break
                cached.remove(worst)
            cached.add(block)
    return hits


def overlapping(workload, num_open=3):
    """Yields ("begin" | "end", request) with up to `num_open` requests open at once, in order of time."""
    running: list = []
    for request in workload.requests():
        while len(running) >= num_open:
            yield "end", heapq.heappop(running)[1]
        yield "begin", request
        heapq.heappush(running, (request.index, request))
    for _, request in running:
        yield "end", request


def paths(workload):
    return [request.path.tolist() for request in workload.requests()]
