"""SAE-G, our own: SAECache's sessions and token types as classes, and one learned number, the best expected hit density.

A block is worth G = max_h P(reuse within h | idle) / E[time held], hits per block-second of cache; the smallest leaves. The curves
come from every request's blocks, evicted ones included (remembered as ghosts; those forgotten are censored, not counted as never
reused). Within a class ln G has one peak over age, so comparing the oldest and the newest leaf of each class is exact: under
pressure the newest blocks of a slow class may be the ones to go. Cold, the order is LRU.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import BlockColumns, num_leading
from engine.prefix.cost import PUBLISHED_8B
from engine.prefix.heads import ClassHeads, ClassRanker
from engine.prefix.policy import POLICIES, EvictionPolicy, Future, Reason
from engine.prefix.request import CacheRequest
from engine.prefix.sae.routing import is_templated, rerouted, route
from engine.prefix.saeg.buckets import NUM_BUCKETS, bucket, place
from engine.prefix.saeg.classes import GAP_RATE, NUM_CLASSES, Classifier, in_words
from engine.prefix.saeg.curves import Curves, LookAhead
from engine.prefix.saeg.records import Records

REFRESH_EVERY, EARLY_REFRESHES = 100, frozenset((0, 1, 3, 7, 15, 31, 63))
# Beyond the last bucket ln G falls by this much a bucket.
TAIL_SLOPE = 0.4


@POLICIES.register("sae_g")
@dataclass(frozen=True)
class SAEG(EvictionPolicy):
    """Hit density by class and age.

    Args:
        beta: exponent of a block's marginal prefill seconds in its value; 0 counts hits, 1 seconds saved.
        half_life: requests after which what was counted weighs half.
        turn_buckets: 2 (first and later turns) or 4.
        without: features of the classes left out, comma-separated.
        look_ahead, least_buckets, unimodal: see Curves.
        two_ends: False compares the oldest leaf of each class only.
        sample: one block in so many is counted; 1 for all.
        ghost_ratio: evicted blocks remembered for each block of capacity.
    """

    beta: float = 0.25
    half_life: int = 3000
    turn_buckets: int = 2
    without: str = ""
    look_ahead: LookAhead = "gittins"
    least_buckets: int = 3
    unimodal: bool = True
    two_ends: bool = True
    sample: int = 1
    ghost_ratio: float = 4.0
    name: ClassVar[str] = "sae_g"

    def __post_init__(self) -> None:
        if self.half_life < 1 or self.sample < 1 or self.least_buckets < 1:
            raise BadRequest("half_life, sample and least_buckets of 'sae_g' must be at least 1.")

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "SAEGRanker":
        return SAEGRanker(columns, self)


class SAEGRanker(ClassRanker):
    """Classes, their curves and the ends of their lists."""

    def __init__(self, columns: BlockColumns, policy: SAEG) -> None:
        self.columns, self.policy = columns, policy
        self.classes = Classifier(policy.without, policy.turn_buckets)
        self.records = Records(columns.num_blocks, NUM_CLASSES)
        self.curves = Curves(self.records, policy.look_ahead, policy.least_buckets, policy.unimodal)
        self.heads = ClassHeads(columns, self.score, two_ends=policy.two_ends)
        self._class = np.zeros(columns.num_blocks, np.int32)
        self._gap_s = np.full(columns.num_blocks, np.nan)
        depths = np.arange(columns.num_blocks)
        self._value = (policy.beta * np.log(PUBLISHED_8B.marginal_s(depths * columns.block_tokens, columns.block_tokens))).tolist()
        self.class_at, self._last_at, self._depth_at = memoryview(self._class), columns.scalars.last_s, columns.scalars.depth
        self._num_requests = 0
        self._price = 0.0

    def on_lookup(self, request: CacheRequest, num_hits: int) -> bool:
        c, path = self.columns, request.path
        templated = is_templated(request, c)
        known = c.cached[path] | c.ghost[path]
        num_known = num_leading(known)
        self._see_gaps(path[:num_known], request.time_s)
        self._gap_s[path[num_known:]] = np.nan
        self.classes.see(request)
        self.records.use(path, request.num_prompt, request.time_s)
        if self._num_requests % REFRESH_EVERY == 0 or self._num_requests in EARLY_REFRESHES:
            self._refresh(request.time_s)
        self._num_requests += 1
        self.heads.restart()
        return templated

    def on_touch(self, request: CacheRequest, num_hits: int, num_cached: int, noted: bool) -> None:
        c, span = self.columns, request.path[:num_cached]
        numbers = self.classes.numbers(request, noted, c.kind[span], c.num_sessions[span] > 1, self._gap_s[span])
        self._class[span] = numbers
        self._show_queues(request, span, num_hits, noted)
        # What waits since an earlier step of the same request, as a prompt before its answer, is counted once.
        self.records.use(span, 0, request.time_s)
        if self.policy.sample > 1:
            counted = span % self.policy.sample == 0
            span, numbers = span[counted], numbers[counted]
        if len(span):
            self.records.wait(span, numbers, request.time_s)

    def score(self, number: int, block: int, now_s: float) -> float:
        """Returns ln G of a block, plus beta ln(its marginal prefill seconds)."""
        return self._log_density(number, now_s - self._last_at[block]) + self._value[self._depth_at[block]]

    def on_evicted(self, blocks: list[int], now_s: float) -> None:
        self.heads.restart()
        last = blocks[-1]
        self._price = math.exp(self._log_density(self.class_at[last], now_s - self._last_at[last]))

    def on_forget(self, block: int, now_s: float) -> None:
        self.records.forget(block, now_s)

    def weights(self) -> dict[str, float]:
        return {"shadow price, hits per block-hour": 3600.0 * self._price, "open records": float(len(self.records))}

    def explain(self, block: int, now_s: float) -> Reason:
        number, idle_s = self.heads.class_of(block), now_s - self._last_at[block]
        density = 3600.0 * math.exp(self._log_density(number, idle_s))
        horizon = self.curves.horizon(number, bucket(idle_s))
        prior = self.curves.prior_share(number)
        others = [(self.score(n, b, now_s), b, n) for n, b in self.heads.ends() if n != number]
        sentence = (
            f"evicted: {in_words(number)}, idle {idle_s:,.0f} s: expects {density:.3g} hits per block-hour "
            f"({100 * horizon.chance:.0f} % within {horizon.seconds:,.0f} s; {100 * prior:.0f} % of this is prior)"
        )
        factors = {"hits_per_block_hour": density, "idle_s": idle_s, "horizon_s": horizon.seconds, "chance": horizon.chance, "prior": prior}
        if others:
            _, other, n = min(others)
            factors["next_hits_per_block_hour"] = 3600.0 * math.exp(self._log_density(n, now_s - self._last_at[other]))
            sentence += f"; next best candidate: {in_words(n)}, {factors['next_hits_per_block_hour']:.3g}"
        return Reason(sentence + ".", factors)

    def _log_density(self, number: int, idle_s: float) -> float:
        row, x = self.curves.row(number), place(idle_s)
        i = int(x)
        if i >= NUM_BUCKETS - 1:
            return row[-1] - TAIL_SLOPE * (x - (NUM_BUCKETS - 1))
        return row[i] + (row[i + 1] - row[i]) * (x - i)

    def _see_gaps(self, known: np.ndarray, now_s: float) -> None:
        gaps, before = now_s - self.columns.last_s[known], self._gap_s[known]
        self._gap_s[known] = np.where(np.isnan(before), gaps, (1.0 - GAP_RATE) * before + GAP_RATE * gaps)

    def _show_queues(self, request: CacheRequest, span: np.ndarray, num_hits: int, templated: bool) -> None:
        """Files the blocks under SAECache's queues, for display; no rank depends on them."""
        shown = route(request, templated)
        queue = np.full(len(span), int(shown.prompt), np.uint8)
        queue[:num_hits] = rerouted(self.columns.queue[span[:num_hits]], int(shown.prompt))
        queue[request.num_prompt :] = int(shown.answer)
        self.columns.queue[span] = queue

    def _refresh(self, now_s: float) -> None:
        self.records.catch_up(now_s)
        self.curves.refresh()
        self.classes.forget(now_s)
        if self._num_requests % REFRESH_EVERY == 0:
            self.records.decay(0.5 ** (REFRESH_EVERY / self.policy.half_life))
