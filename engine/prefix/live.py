"""A live run: the same requests go through one model behind two or more prefix caches, each under a policy of its own.

Every request is served by each policy in turn, the first one changing from request to request, so that a machine that slows down
or warms up meets all of them alike. Policies see the script's clock; only the time to first token is the machine's.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.cache_types import CacheRun
from engine.errors import BadRequest, Cancelled
from engine.model.cache import CachePool
from engine.model.decoder import Decoder
from engine.prefix.lab import LIMIT
from engine.prefix.live_record import LiveLog, live_run
from engine.prefix.live_traffic import LiveRequest, LiveTraffic
from engine.prefix.policies import POLICIES
from engine.prefix.policy import EvictionPolicy
from engine.prefix.replay import replay
from engine.prefix.request import CacheRequest
from engine.prefix.serve import PrefixServer
from engine.prefix.serve_prefill import compute_rows
from engine.prefix.serve_types import Occupancy, Served, ServeRequest
from engine.prefix.uses import block_uses
from engine.recorder import Recorder


class LiveStep(NamedTuple):
    """One request under one policy, as it happens.

    Args:
        position: of the policy among those that run; index: of the request; kind: of its session.
        held: what the cache holds now; weights: what the policy has learned by now.
    """

    position: int
    policy: str
    index: int
    kind: str
    served: Served
    held: Occupancy
    weights: dict[str, float]


class LiveRun:
    """One traffic under several policies.

    Args:
        policies: two or more, or one for a look at it alone; none that needs to know the future.
        capacity: of each policy's cache in blocks.
        predict: see PrefixServer; asked about requests for which the traffic holds no prediction.
        repeats: prefills of every request, of which the median time counts; those before the last leave no trace.
    """

    def __init__(
        self,
        decoder: Decoder,
        traffic: LiveTraffic,
        policies: Sequence[EvictionPolicy],
        capacity: int,
        predict: Callable[[Tensor], float] | None = None,
        repeats: int = 1,
    ) -> None:
        if repeats < 1:
            raise BadRequest(f"The prefill of a request is to be timed {repeats} times; give at least 1.")
        for policy in policies:
            if policy.needs_future:
                raise BadRequest(f"The policy {policy.name!r} needs to know requests to come and cannot run live; choose another.")
        self.decoder, self.traffic, self.capacity, self._repeats = decoder, traffic, capacity, repeats
        self._caches = CachePool(decoder.spec, decoder.dtype, decoder.device)
        workload = traffic.workload
        # As many rows as there are blocks: they are named in order of first use, so rows are the workload's block numbers.
        sizes = {"block_tokens": workload.block_size, "num_rows": workload.num_blocks}
        self.servers = [PrefixServer(decoder, policy, capacity, **sizes, caches=self._caches, predict=predict) for policy in policies]

    @property
    def pool_bytes(self) -> list[int]:
        """Returns the bytes of each policy's pool."""
        return [server.pool.size_bytes for server in self.servers]

    def run(
        self,
        seed: int,
        predictor: str,
        place: str,
        on_step: Callable[[LiveStep], None] = lambda step: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[CacheRun, ...]:
        """Returns a run for each policy. Raises Cancelled between two layers or requests; steps told by then stand.

        Args:
            seed, predictor, place: kept with the runs: of the traffic, of its predictions, and the model and machine.
        """
        logs = [LiveLog([], [], []) for _ in self.servers]
        self._warm_up(cancelled)
        for told, request in zip(self.traffic.workload.requests(), self.traffic.requests, strict=True):
            order = list(range(len(self.servers)))
            for position in order if told.index % 2 == 0 else reversed(order):
                step = self._step(position, told, request, cancelled)
                for column, value in zip(logs[position], (step.served, step.held, step.weights), strict=True):
                    column.append(value)
                on_step(step)
        workload = self.traffic.workload
        uses = block_uses(workload)
        limit = replay(workload, POLICIES.create(LIMIT), self.capacity, uses)
        return tuple(
            live_run(workload, uses, server.policy, self.capacity, log, place, seed, predictor, limit)
            for server, log in zip(self.servers, logs, strict=True)
        )

    def _step(self, position: int, told: CacheRequest, request: LiveRequest, cancelled: Callable[[], bool]) -> LiveStep:
        if cancelled():
            raise Cancelled("The live run was stopped between two requests.")
        server = self.servers[position]
        asked = ServeRequest(request.prompt, *(getattr(told, name) for name in _TOLD))
        times_s = []
        for _ in range(self._repeats - 1):
            with server.prefill(asked, len(request.answer), cancelled) as running:
                times_s.append(running.first.ttft_s)
        with server.prefill(asked, len(request.answer), cancelled) as running:
            server.write_answer(running, request.answer)
            served = server.finish(running)
        median_s = statistics.median([*times_s, served.first.ttft_s])
        served = served._replace(first=served.first._replace(ttft_s=median_s))
        assert np.array_equal(served.path, told.path), "blocks are numbered as in the workload"
        weights = server.tree.ranker.weights()
        return LiveStep(position, server.policy.name, told.index, request.kind, served, server.occupancy(), weights)

    def _warm_up(self, cancelled: Callable[[], bool]) -> None:
        """Computes the longest prompt once in two parts, uncounted, so that no request pays for first use of memory or code."""
        longest = max(self.traffic.requests, key=lambda request: len(request.prompt) + len(request.answer))
        ids = torch.from_numpy((longest.prompt + longest.answer).ids)
        cache, middle = self._caches.get("prefix 0", len(ids)), len(ids) // 2
        for start, stop in ((0, middle), (middle, len(ids))):
            if start < stop:
                compute_rows(self.decoder, ids[start:stop], start, cache, Recorder(self.decoder.device), cancelled)


_TOLD = ("time_s", "session", "turn", "is_agent", "waits_for_tool", "follow_up")
