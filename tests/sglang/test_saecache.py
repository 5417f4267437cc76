"""`saecache` in SGLang's own scheduler evicts what the built-in tree evicts on the same sequence of requests."""

import numpy as np
import pytest
from running import PAGE, PAGES
from servers import Server

from engine.prefix.blocks import BlockColumns, TokenType
from engine.prefix.names import BlockNames
from engine.prefix.policies import POLICIES
from engine.prefix.request import CacheRequest
from engine.prefix.roles import TypedTokens
from engine.prefix.tree import PrefixTree
from engine.serving.sglang.metadata import RequestMeta, write_meta


@pytest.fixture(scope="module")
def server(running) -> Server:
    """A server whose cache holds a few conversations at most, and has served none: this file comes before others that ask for it."""
    return running.small_cache().server


class Sent:
    """One request of a conversation: whole pages of a shared template, of what was said before and of what is asked now."""

    def __init__(self, session: int, turn: int, time_s: float, pages: list[tuple[str, int]]) -> None:
        self.session, self.turn, self.time_s = session, turn, time_s
        self.is_agent = session % 3 == 0
        self.follow_up = 0.9 if session % 2 else 0.3
        self.runs = [(kind, PAGE) for kind, _ in pages]
        self.ids = [10 + (seed * 37 + i * 11) % 240 for _, seed in pages for i in range(PAGE)]

    def meta(self) -> dict[str, str]:
        told = {"session": f"s{self.session}", "turn": self.turn, "agent": self.is_agent, "follow_up": self.follow_up}
        return write_meta(RequestMeta(**told, time_s=self.time_s, kinds=tuple(self.runs)))


def conversations(num_requests: int, seed: int) -> list[Sent]:
    """Returns requests of a dozen sessions in an order that returns to some of them soon and to others late."""
    rng = np.random.default_rng(seed)
    kinds = ("user", "tool_output", "response", "cot")
    told: dict[int, list[tuple[str, int]]] = {}
    turns: dict[int, int] = {}
    sent, time_s, fresh = [], 0.0, 1_000
    for _ in range(num_requests):
        session = int(rng.choice(12, p=np.arange(12, 0, -1) / 78))
        if session not in told or len(told[session]) > 14:
            told[session], turns[session] = [("system", session % 2)] * 1 + [("system", 2 + session % 2)], 0
        for _ in range(int(rng.integers(1, 4))):
            fresh += 1
            told[session] = [*told[session], (kinds[int(rng.integers(4))], fresh)]
        time_s += float(rng.exponential(20.0))
        sent.append(Sent(session, turns[session], time_s, told[session]))
        turns[session] += 1
    return sent


def built_in(requests: list[Sent]) -> tuple[PrefixTree, list[int]]:
    """Returns the built-in tree after the same requests, and the pages that each of them found.

    SGLang makes room for one page more than a request's own, in case its last token begins one: a tree of one page less does the same.
    """
    columns = BlockColumns.empty(4 * PAGES, PAGE)
    tree, names = PrefixTree(columns, PAGES - 1, POLICIES.create("saecache", temperature=0.25)), BlockNames(columns)
    tree.ghosts.capacity = PAGES
    hits = []
    numbers: dict[int, int] = {}
    for i, sent in enumerate(requests):
        kinds = np.repeat([TokenType[kind.upper()] for kind, _ in sent.runs], PAGE).astype(np.uint8)
        tokens = TypedTokens(np.asarray(sent.ids, np.int64), kinds)
        path = names.path(tokens.block_keys(PAGE), tokens.block_kinds(PAGE))
        session = numbers.setdefault(sent.session, len(numbers))
        lease = tree.begin(
            CacheRequest(i, sent.time_s, session, sent.turn, sent.is_agent, False, sent.follow_up, len(sent.ids), path, len(path))
        )
        tree.extend(lease)
        tree.end(lease)
        hits.append(lease.num_hits)
    return tree, hits


def test_hits_evictions_and_what_was_learned_equal_the_built_in_tree(server):
    requests = conversations(90, seed=3)
    found = [server.generate(sent.ids, 1, sent.meta())["meta_info"]["cached_tokens"] // PAGE for sent in requests]
    tree, hits = built_in(requests)
    state = server.state()
    assert tree.num_evicted > 100, "the sequence has to put the cache under pressure"
    assert found == hits
    assert (state["evicted_pages"], state["cached_pages"]) == (tree.num_evicted, tree.size)
    assert (state["unplanned_pages"], state["passed_over"], state["complaints"]) == (0, 0, [])
    assert state["params"]["temperature"] == 0.25
    assert state["weights"] == pytest.approx(tree.ranker.weights())


def test_least_recently_used_would_have_found_other_pages():
    """The sequence tells policies apart, so that the equality above means something."""
    requests = conversations(90, seed=3)
    columns = BlockColumns.empty(4 * PAGES, PAGE)
    tree, names, hits = PrefixTree(columns, PAGES, POLICIES.create("lru")), BlockNames(columns), []
    for i, sent in enumerate(requests):
        tokens = TypedTokens(np.asarray(sent.ids, np.int64), np.zeros(len(sent.ids), np.uint8))
        path = names.path(tokens.block_keys(PAGE))
        lease = tree.begin(CacheRequest(i, sent.time_s, sent.session, sent.turn, False, False, -1.0, len(sent.ids), path, len(path)))
        tree.extend(lease)
        tree.end(lease)
        hits.append(lease.num_hits)
    assert hits != built_in(requests)[1]
