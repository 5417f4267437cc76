"""SAE-G with a guard: two directories without data are kept beside the cache, one under LRU, one under SAE-G.

Where LRU's has had more hits lately by a margin, victims are LRU's until SAE-G's has had more by as much: insurance against traffic that
turns on what was learned, at three times the cost of an eviction.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.prefix.blocks import BlockColumns
from engine.prefix.leaves import LeafHeap
from engine.prefix.policies.lru import LRU
from engine.prefix.policies.sae_g import SAEG, SAEGRanker
from engine.prefix.policy import NOTHING, POLICIES, Future, Reason
from engine.prefix.request import CacheRequest
from engine.prefix.tree import PrefixTree


@POLICIES.register("sae_g_guard")
@dataclass(frozen=True)
class GuardedSAEG(SAEG):
    """SAE-G that falls back to LRU.

    Args:
        margin: by how much, as a share of looked-up blocks, one directory must lead.
        guard_half_life: requests after which a directory's hits weigh half.
    """

    margin: float = 0.003
    guard_half_life: int = 300
    name: ClassVar[str] = "sae_g_guard"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "GuardedRanker":
        return GuardedRanker(columns, self, capacity)


class GuardedRanker(SAEGRanker):
    """SAE-G's ranker and LRU's order over the same candidates."""

    def __init__(self, columns: BlockColumns, policy: GuardedSAEG, capacity: int) -> None:
        super().__init__(columns, policy)
        plain = SAEG(**{name: value for name, value in policy.params().items() if name not in ("margin", "guard_half_life")})
        self._shadows = [_shadow(columns, capacity, LRU()), _shadow(columns, capacity, plain)]
        columns.shadows += [shadow.columns for shadow in self._shadows]
        self._hits, self._lookups = np.zeros(2), 0.0
        self._decay = 0.5 ** (1.0 / policy.guard_half_life)
        self._margin = policy.margin
        self._by_use = LeafHeap()
        self.is_lru = False

    def on_lookup(self, request: CacheRequest, num_hits: int) -> bool:
        templated = super().on_lookup(request, num_hits)
        for i, shadow in enumerate(self._shadows):
            _name(shadow.columns, self.columns, request.path)
            lease = shadow.begin(request)
            shadow.extend(lease)
            shadow.end(lease)
            self._hits[i] = self._decay * self._hits[i] + lease.num_hits
        self._lookups = self._decay * self._lookups + request.num_prompt
        lead = (self._hits[0] - self._hits[1]) / max(self._lookups, 1.0)
        self.is_lru = lead > self._margin or (self.is_lru and lead > -self._margin)
        return templated

    def add_leaf(self, block: int) -> None:
        super().add_leaf(block)
        at = self.columns.scalars
        self._by_use.push((at.tick[block], -at.depth[block], block))

    def drop_leaf(self, block: int) -> None:
        super().drop_leaf(block)
        self._by_use.discard(block)

    def evict(self, block: int, now_s: float) -> None:
        if self.is_lru:
            # Not the best by SAE-G's score, so that its parent is not the next best either.
            self.heads.drop(block)
        else:
            super().evict(block, now_s)
        self._by_use.discard(block)

    def victim(self, now_s: float) -> int:
        if not self.is_lru:
            return super().victim(now_s)
        first = self._by_use.first()
        return NOTHING if first is None else first[-1]

    def candidates(self) -> Iterator[int]:
        return iter(self._by_use)

    def weights(self) -> dict[str, float]:
        return super().weights() | {"guard": float(self.is_lru)}

    def explain(self, block: int, now_s: float) -> Reason:
        reason = super().explain(block, now_s)
        if not self.is_lru:
            return reason
        return Reason("evicted: longest unused; LRU has had more hits lately, so the guard follows it.", reason.factors)


def _shadow(columns: BlockColumns, capacity: int, policy: LRU | SAEG) -> PrefixTree:
    own = BlockColumns(columns.parent, columns.depth, columns.kind, columns.block_tokens)
    return PrefixTree(own, capacity, policy)


def _name(own: BlockColumns, columns: BlockColumns, path: np.ndarray) -> None:
    """Takes over what blocks are: rows may have been named, or named anew, since the shadow was made."""
    for name in ("parent", "depth", "kind"):
        getattr(own, name)[path] = getattr(columns, name)[path]
