"""Additions that say what the chunks a method reads have seen when their caches were computed."""

from dataclasses import dataclass
from typing import ClassVar

from engine.fusion.wrapper import WRAPPERS, Wrapper
from engine.types import ChunkContext


@WRAPPERS.register("alone")
@dataclass(frozen=True, slots=True)
class Alone(Wrapper):
    """Chunks computed alone at position 0, as in the papers."""

    label: ClassVar[str] = "alone"
    chunk_context: ClassVar[ChunkContext] = "alone"


@WRAPPERS.register("system")
@dataclass(frozen=True, slots=True)
class BehindSystem(Wrapper):
    """Chunks computed behind the system part, whose KV is dropped."""

    label: ClassVar[str] = "system"
    chunk_context: ClassVar[ChunkContext] = "system"


@WRAPPERS.register("primed")
@dataclass(frozen=True, slots=True)
class Primed(Wrapper):
    """Ours: chunks computed behind the system part and a neutral primer, the first one behind the system part alone.

    A chunk cached as the first document is later used as the second to last; the primer stands in for what comes before it,
    whatever that will be. It costs time when the cache is built, nothing when it is used, and two stored versions of a
    chunk that comes first in some requests and later in others.
    """

    label: ClassVar[str] = "primed"
    chunk_context: ClassVar[ChunkContext] = "primed"


@WRAPPERS.register("primed-mean")
@dataclass(frozen=True, slots=True)
class PrimedMean(Wrapper):
    """Ours: as `primed`, behind each of several primers in turn, the mean of the keys, values and KVzip scores stored.

    What a primer adds to a chunk's KV is partly what any document before it would add, partly its own; the mean keeps the
    first and evens out the second. Building the cache costs as many times more, using and storing it nothing.
    """

    label: ClassVar[str] = "primed-mean"
    chunk_context: ClassVar[ChunkContext] = "primed-mean"


@WRAPPERS.register("primed-one")
@dataclass(frozen=True, slots=True)
class PrimedOne(Wrapper):
    """As `primed`, for every chunk, the first too: one stored version."""

    label: ClassVar[str] = "primed-one"
    chunk_context: ClassVar[ChunkContext] = "primed-one"
