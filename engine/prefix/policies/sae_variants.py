"""SAECache with parts of it held fixed (2605.18825, ablation), and with gaps learned from evicted blocks as well.

`saecache_fixed` learns nothing: weights 1, gamma 1, the paper's fixed gaps; each of the four ablations lets one part learn.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.prefix.policies.saecache import SAECache
from engine.prefix.policy import POLICIES


@POLICIES.register("saecache_ghost")
@dataclass(frozen=True)
class SAEGhost(SAECache):
    """Gaps of re-requested evicted blocks count too, so that mu and sigma do not shrink with the cache."""

    observe: Literal["hits", "hits+ghost"] = "hits+ghost"
    name: ClassVar[str] = "saecache_ghost"


@POLICIES.register("saecache_flat")
@dataclass(frozen=True)
class SAEFlat(SAECache):
    """Without the survival term, T = 1, gaps from ghosts: alpha w / idle."""

    observe: Literal["hits", "hits+ghost"] = "hits+ghost"
    temperature: float = 1.0
    survival: bool = False
    name: ClassVar[str] = "saecache_flat"


@POLICIES.register("saecache_fixed")
@dataclass(frozen=True)
class SAEFixed(SAECache):
    """Nothing is learned."""

    learn_types: bool = False
    learn_timing: bool = False
    learn_position: bool = False
    learn_queues: bool = False
    chat_mu: float = 4.15
    chat_sigma: float = 0.97
    name: ClassVar[str] = "saecache_fixed"


@POLICIES.register("saecache_types")
@dataclass(frozen=True)
class SAETypes(SAEFixed):
    """Only token-type weights are learned."""

    learn_types: bool = True
    name: ClassVar[str] = "saecache_types"


@POLICIES.register("saecache_timing")
@dataclass(frozen=True)
class SAETiming(SAEFixed):
    """Only the gaps between turns are learned."""

    learn_timing: bool = True
    name: ClassVar[str] = "saecache_timing"


@POLICIES.register("saecache_position")
@dataclass(frozen=True)
class SAEPosition(SAEFixed):
    """Only position decay is learned."""

    learn_position: bool = True
    name: ClassVar[str] = "saecache_position"


@POLICIES.register("saecache_queues")
@dataclass(frozen=True)
class SAEQueues(SAEFixed):
    """Only queue weights are learned."""

    learn_queues: bool = True
    name: ClassVar[str] = "saecache_queues"
