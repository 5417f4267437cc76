"""SAECache (arXiv 2605.18825): four queues by kind of session, five token types, everything about them learned online.

P(b) = alpha_q w_tau p_q(b) / idle, smallest leaves first, EVICT_FIRST before all (section on eviction); p is the survival of a
log-normal gap for CHAT and AGENT, position decay for STRUCTURAL. Computed in logarithms: the survival underflows at 38 sigma.
Within a queue and type P falls with idle time, so comparing the oldest of each (91 at most, STRUCTURAL in 16 bands) is exact.
Choices where the paper is silent stand with the part they concern, in `engine/prefix/sae/`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from engine.prefix.blocks import BlockColumns, Queue, TokenType, num_leading
from engine.prefix.heads import ClassHeads, ClassRanker
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, Reason
from engine.prefix.request import CacheRequest
from engine.prefix.sae.gaps import LogNormalGaps
from engine.prefix.sae.position import SCORE_BANDS, PositionDecay
from engine.prefix.sae.queue_weights import EVERY_REQUESTS, QueueWeights
from engine.prefix.sae.routing import Route, is_templated, rerouted, route
from engine.prefix.sae.token_weights import NUM_TYPES, TokenWeights

# Classes: 0 EVICT_FIRST; CHAT and AGENT by type; STRUCTURAL by type and band.
FIRST, CHAT, AGENT, STRUCTURAL = 0, 1, 1 + NUM_TYPES, 1 + 2 * NUM_TYPES
NUM_CLASSES = STRUCTURAL + NUM_TYPES * SCORE_BANDS
NOT_CACHED = NUM_CLASSES
_FIRST_CLASS = np.array((FIRST, STRUCTURAL, CHAT, AGENT), np.int64)
_QUEUE_OF = np.repeat([0, 2, 3, 1], [1, NUM_TYPES, NUM_TYPES, NUM_TYPES * SCORE_BANDS]).tolist()


@POLICIES.register("saecache")
@dataclass(frozen=True)
class SAECache(EvictionPolicy):
    """The paper's policy.

    Args:
        observe: gaps are learned from hits (the paper) or from re-requests of evicted blocks as well.
        temperature: T of the queue weights.
        learn_types, learn_timing, learn_position, learn_queues: False keeps that part as it was set.
        survival: False drops p of the session queues, leaving alpha w / idle.
        answers_stay: answers of sessions that go on stay with them; False evicts all answers first.
        chat_mu, chat_sigma, agent_mu, agent_sigma: of ln(gap in s) at first, the paper's offline fits.
        least_idle_s: idle times below it count as it.
        ghost_ratio: evicted blocks remembered for each block of capacity.
    """

    observe: Literal["hits", "hits+ghost"] = "hits"
    temperature: float = 0.5
    learn_types: bool = True
    learn_timing: bool = True
    learn_position: bool = True
    learn_queues: bool = True
    survival: bool = True
    answers_stay: bool = True
    chat_mu: float = 4.82
    chat_sigma: float = 1.25
    agent_mu: float = 2.28
    agent_sigma: float = 1.34
    least_idle_s: float = 0.01
    ghost_ratio: float = 1.0
    name: ClassVar[str] = "saecache"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "SAERanker":
        return SAERanker(columns, self)


class SAERanker(ClassRanker):
    """Classes of blocks, what was learned about them, and the heads of their lists."""

    def __init__(self, columns: BlockColumns, policy: SAECache) -> None:
        self.columns, self.policy = columns, policy
        self.types = TokenWeights(policy.learn_types)
        self.queues = QueueWeights(policy.temperature, policy.learn_queues)
        self.position = PositionDecay(policy.learn_position)
        self.chat = LogNormalGaps(policy.chat_mu, policy.chat_sigma, policy.learn_timing)
        self.agent = LogNormalGaps(policy.agent_mu, policy.agent_sigma, policy.learn_timing)
        self.heads = ClassHeads(columns, self.score)
        self._class = np.full(columns.num_blocks, NOT_CACHED, np.uint8)
        self.class_at, self._last_at = memoryview(self._class), columns.scalars.last_s
        self._held = np.zeros(NUM_CLASSES + 1, np.int64)
        self._num_requests = 0
        self._least_idle_s = policy.least_idle_s
        chat, agent = (self.chat, self.agent) if policy.survival else (None, None)
        self._gaps = [None, *[chat] * NUM_TYPES, *[agent] * NUM_TYPES, *[None] * (NUM_TYPES * SCORE_BANDS)]
        self._base: list[float] = []
        self.set_weights()

    def on_lookup(self, request: CacheRequest, num_hits: int) -> Route:
        c, prompt = self.columns, request.path[: request.num_prompt]
        missed = prompt[num_hits:]
        ghosts = c.ghost[missed]
        num_known = num_hits + (num_leading(ghosts) if self.policy.observe == "hits+ghost" else 0)
        self.types.see(c.kind[prompt], num_hits, c.kind[missed[ghosts]])
        self.queues.see(c.queue[prompt[:num_hits]])
        self._see_gap(request, prompt[:num_known])
        chosen = route(request, is_templated(request, c), self.policy.answers_stay)
        self.position.see(request.num_prompt, num_hits, chosen.prompt == Queue.STRUCTURAL)
        self._num_requests += 1
        if self._num_requests % EVERY_REQUESTS == 0:
            self.queues.update(self.num_held())
            self.position.update()
            self.types.update()
            self.set_weights()
        self.heads.restart()
        return chosen

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: Route) -> None:
        c, span = self.columns, request.path[:num_cached]
        prompt, answer = map(int, noted)
        queue = np.full(num_cached, prompt, np.uint8)
        queue[:num_hits] = rerouted(c.queue[span[:num_hits]], prompt)
        queue[request.num_prompt :] = answer
        c.queue[span] = queue
        old, fresh = self._class[span], self._classes(queue, c.kind[span], c.depth[span])
        self._class[span] = fresh
        self._held += np.bincount(fresh, minlength=NUM_CLASSES + 1) - np.bincount(old, minlength=NUM_CLASSES + 1)

    def set_weights(self) -> None:
        """Takes what was learned into the scores: for each class the part of ln P that does not depend on idle time."""
        alpha, w, bands = self.queues.logs, self.types.logs, [self.position.log_p(band) for band in range(SCORE_BANDS)]
        self._base = [-math.inf]
        self._base += [alpha[queue] + w[kind] for queue in (Queue.CHAT, Queue.AGENT) for kind in range(NUM_TYPES)]
        self._base += [alpha[Queue.STRUCTURAL] + w[kind] + log_p for kind in range(NUM_TYPES) for log_p in bands]

    def num_held(self) -> list[int]:
        """Returns the number of cached blocks of each queue."""
        h = self._held
        return [int(h[FIRST]), int(h[STRUCTURAL:NUM_CLASSES].sum()), int(h[CHAT:AGENT].sum()), int(h[AGENT:STRUCTURAL].sum())]

    def score(self, number: int, block: int, now_s: float) -> float:
        """Returns ln P of a block of a class; minus infinity for EVICT_FIRST."""
        if number == FIRST:
            return -math.inf
        idle_s = now_s - self._last_at[block]
        if idle_s < self._least_idle_s:
            idle_s = self._least_idle_s
        gaps = self._gaps[number]
        return self._base[number] - math.log(idle_s) + (gaps.log_survival(idle_s) if gaps is not None else 0.0)

    def on_evicted(self, blocks: list[int], now_s: float) -> None:
        self.heads.restart()
        left = np.array(blocks)
        self._held -= np.bincount(self._class[left], minlength=NUM_CLASSES + 1)
        self._class[left] = NOT_CACHED
        self.types.evict(self.columns.kind[left])

    def weights(self) -> dict[str, float]:
        queues = {f"alpha {queue.name.lower()}": self.queues.values[queue] for queue in Queue if queue != Queue.EVICT_FIRST}
        types = {f"w {kind.name.lower()}": self.types.values[kind] for kind in TokenType}
        timing = {"mu chat": self.chat.mu, "sigma chat": self.chat.sigma, "mu agent": self.agent.mu, "sigma agent": self.agent.sigma}
        return queues | types | timing | {"gamma": self.position.gamma}

    def explain(self, block: int, now_s: float) -> Reason:
        number = self.heads.class_of(block)
        idle_s = max(now_s - self._last_at[block], self.policy.least_idle_s)
        if number == FIRST:
            return Reason(f"evicted: nobody is expected to ask for it again (evict first), idle {idle_s:,.0f} s.", {"idle_s": idle_s})
        queue, kind, log_p = self._factors(number, idle_s)
        factors = {"alpha": self.queues.values[queue], "w": self.types.values[kind], "p": math.exp(log_p), "idle_s": idle_s}
        sentence = (
            f"evicted: queue {Queue(queue).name.lower()} weighs {factors['alpha']:.2f}, {TokenType(kind).name.lower()} tokens "
            f"{factors['w']:.2f}, chance of reuse {factors['p']:.3f}, idle {idle_s:,.0f} s: the smallest product over idle time."
        )
        return Reason(sentence, factors)

    def _factors(self, number: int, idle_s: float) -> tuple[int, int, float]:
        """Returns queue, type and ln p of a class at an idle time."""
        if number >= STRUCTURAL:
            kind, band = divmod(number - STRUCTURAL, SCORE_BANDS)
            return 1, kind, self.position.log_p(band)
        queue, kind = _QUEUE_OF[number], (number - CHAT) % NUM_TYPES
        if not self.policy.survival:
            return queue, kind, 0.0
        return queue, kind, (self.chat if number < AGENT else self.agent).log_survival(idle_s)

    def _classes(self, queue: np.ndarray, kind: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Returns the classes uint8 [n] of blocks."""
        found = _FIRST_CLASS[queue] + kind * (queue > 0)
        structural = queue == 1
        if structural.any():
            found[structural] = STRUCTURAL + kind[structural] * SCORE_BANDS + self.position.bands(depth[structural])
        return found.astype(np.uint8)

    def _see_gap(self, request: CacheRequest, known: np.ndarray) -> None:
        """Takes one gap from a request: since the last use of its deepest block that is its session's own and no system text.

        A first request's hit on a shared template is no gap between turns, so it is not counted (our choice).
        """
        at = self.columns.scalars
        for block in reversed(known.tolist()):
            if at.num_sessions[block] == 1 and at.owner[block] == request.session and at.kind[block] != TokenType.SYSTEM:
                (self.agent if request.is_agent else self.chat).add(request.time_s - at.last_s[block])
                return
            if at.num_sessions[block] > 1:
                return
