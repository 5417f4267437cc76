"""The exact prefixes of conversations, in pages under an eviction policy. Knows nothing of chunks or methods.

A turn's prefix is inserted before anything else is put into the turn's cache, and what a turn has become enters it computed anew
from its text, so that nothing read behind a fused chunk can get here.
"""

import hashlib
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.chat.types import PrefixStats
from engine.errors import BadRequest
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.prefix.blocks import Queue, TokenType
from engine.prefix.policies import POLICIES
from engine.prefix.pool import pages_within
from engine.prefix.roles import TypedTokens
from engine.prefix.serve import BLOCK_TOKENS, PrefixServer
from engine.prefix.serve_types import Served, ServeRequest
from engine.recorder import Recorder

DEFAULT_POLICY = "saecache"


class PrefixUse(NamedTuple):
    """What a prefix took: tokens found and computed, and the seconds of each."""

    num_hits: int
    num_computed: int
    load_s: float
    compute_s: float


class Asking(NamedTuple):
    """Whose prefix it is: the number of the conversation, and how many turns came before."""

    session: int
    turn: int


def session_number(name: str) -> int:
    """Returns the number by which policies know a conversation of a name, the same in every process."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) & 0x7FFF_FFFF


class ConversationPrefixes:
    """One prefix cache for all conversations of a model.

    Args:
        policy: name of an eviction policy that needs no future.
        size_bytes: of the pages, taken at once; at least one block's.
        now: a clock in seconds that does not go back.

    Raises UnknownName, BadRequest.
    """

    def __init__(self, decoder: Decoder, policy: str, size_bytes: int, now: Callable[[], float] = time.monotonic) -> None:
        chosen = POLICIES.create(policy)
        if chosen.needs_future:
            raise BadRequest(f"The policy {policy!r} needs to know requests to come and cannot run live; choose another.")
        capacity = pages_within(size_bytes, decoder.spec, BLOCK_TOKENS, decoder.dtype)
        self.policy = policy
        self.server = PrefixServer(decoder, chosen, capacity, BLOCK_TOKENS)
        self._now = now
        self._num_requests = self._num_hit_tokens = self._num_computed_tokens = 0
        self._evicted = np.zeros(len(Queue), np.int64)

    def fill(
        self,
        asking: Asking,
        tokens: TypedTokens,
        cache: RequestCache,
        recorder: Recorder,
        cancelled: Callable[[], bool],
        counts: bool = True,
    ) -> PrefixUse:
        """Puts a prefix into a request's cache, what is not found computed behind what is, and keeps it.

        Args:
            counts: whether somebody asked; a measurement repeated teaches the policy nothing. Raises Cancelled.
        """
        behind = None if counts else tokens
        request = ServeRequest(tokens if counts else tokens[:0], self._now(), *asking)
        with self.server.hold(request, cache, recorder, behind, cancelled) as running:
            spans = running.first.spans
            served = self.server.finish(running)
        loads = [span for span in spans if span.stage == "load"]
        load_s = sum(span.end_s - span.start_s for span in loads)
        for span in loads:
            recorder.add("device", "load_wait", span.layer, span.start_s, span.end_s)
        compute_s = sum(span.end_s - span.start_s for span in spans if span.stage == "recompute")
        use = PrefixUse(served.first.num_reused, len(tokens) - served.first.num_reused, load_s, compute_s)
        self._count(served, use, counts)
        return use

    def stats(self) -> PrefixStats:
        """Returns what is held and what was done so far."""
        held, pool = self.server.occupancy(), self.server.pool
        return PrefixStats(
            policy=self.policy,
            block_tokens=pool.block_tokens,
            capacity_blocks=pool.num_pages,
            size_bytes=pool.size_bytes,
            queues=_named(Queue, held.queues),
            kinds=_named(TokenType, held.kinds),
            num_free=held.num_free,
            num_requests=self._num_requests,
            num_hit_tokens=self._num_hit_tokens,
            num_computed_tokens=self._num_computed_tokens,
            evicted=_named(Queue, self._evicted),
        )

    def _count(self, served: Served, use: PrefixUse, counts: bool) -> None:
        self._evicted += np.bincount(served.evicted_queue, minlength=len(Queue))
        if counts:
            self._num_requests += 1
            self._num_hit_tokens += use.num_hits
            self._num_computed_tokens += use.num_computed


def _named(names: type[Queue] | type[TokenType], counts: np.ndarray) -> dict[str, int]:
    return {member.name.lower(): int(counts[member]) for member in names}
