"""Live runs for the page: scripted sessions through the loaded model behind a prefix cache a policy, one turn of the engine for all.

Nothing of torch is imported before a run is asked for. What happened by the time a run is stopped has been told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from engine.cache_types import CacheRun, LiveAsk, LivePoint
from engine.errors import BadRequest
from engine.prefix.policies import POLICIES
from engine.streaming import streamed
from engine.turns import Turns
from engine.types import Status

if TYPE_CHECKING:
    from engine.prefix.live import LiveStep
    from engine.prefix.live_traffic import LiveTraffic
    from engine.runtime import Runtime

MEAN_GAP_S = 4.0
OnStatus = Callable[[Status], None]
IsStopped = Callable[[], bool]


class LiveRuns:
    """Everything live about eviction that one process serves. Thread-safe.

    Args:
        turns: the engine's one slot, held for a whole run, so that nobody's work is in its times.
        ready: the loaded model, loaded now where none is.
        limited: adds a time limit to what stops a run.
    """

    def __init__(self, turns: Turns, ready: Callable[[], Runtime], limited: Callable[[IsStopped], IsStopped] = lambda stop: stop) -> None:
        self._turns, self._ready, self._limited = turns, ready, limited

    def policy_names(self) -> tuple[str, ...]:
        """Returns the names of policies that can run live: all but those that need to know the future."""
        return tuple(name for name in POLICIES.names() if not POLICIES.get(name).needs_future)

    def stream(self, ask: LiveAsk, cancelled: IsStopped = lambda: False) -> Iterator[Status | LivePoint | CacheRun]:
        """Yields what is being done, every request under every policy as it is served and, last, a run a policy.

        Closing the iterator stops it too. Raises EngineError.
        """

        def work(put: Callable[[Status | LivePoint | CacheRun], None], stopped: IsStopped) -> None:
            for run in self.run(ask, put, put, stopped):
                put(run)

        return streamed(work, "live", cancelled)

    def run(
        self,
        ask: LiveAsk,
        on_status: OnStatus = lambda status: None,
        on_point: Callable[[LivePoint], None] = lambda point: None,
        cancelled: IsStopped = lambda: False,
    ) -> tuple[CacheRun, ...]:
        """Returns a run for each policy, judged against MIN, waiting for its turn. Raises EngineError."""
        for name in ask.policies:
            if POLICIES.get(name).needs_future:
                raise BadRequest(f"The policy {name!r} needs to know requests to come and cannot run live; choose another.")
        waiting = lambda ahead: on_status(Status(f"Waiting: {ahead} request{'s' if ahead > 1 else ''} ahead", 0.0, ahead))  # noqa: E731
        with self._turns.turn(waiting, cancelled):
            on_status(Status("Loading the model", 0.0))
            return _run(self._ready(), ask, on_status, on_point, self._limited(cancelled))


def _run(
    runtime: Runtime, ask: LiveAsk, on_status: OnStatus, on_point: Callable[[LivePoint], None], cancelled: IsStopped
) -> tuple[CacheRun, ...]:
    from engine.prefix.blocks import capacity_in_blocks
    from engine.prefix.live import LiveRun
    from engine.prefix.live_traffic import live_traffic
    from engine.prefix.roles import ChatFormat

    spec, prompts = runtime.model.spec, runtime.prompts
    chat = ChatFormat(runtime.model.tokenizer, lambda text, special: prompts.tokenize(text, special).ids)
    traffic = live_traffic(chat, ask.num_requests, ask.seed, MEAN_GAP_S, spec.max_context)
    traffic, predict, predictor = _predicted(runtime, traffic)
    capacity = capacity_in_blocks(ask.capacity, traffic.workload.num_blocks)
    live = LiveRun(runtime.decoder, traffic, [POLICIES.create(name) for name in ask.policies], capacity, predict, ask.repeats)
    num = ask.num_requests * len(ask.policies)
    told = 0

    def on_step(step: LiveStep) -> None:
        nonlocal told
        told += 1
        on_point(_point(step))
        on_status(Status(f"Request {step.index + 1} of {ask.num_requests}, {step.kind}, under {step.policy}", told / num))

    on_status(Status("Warming up", 0.0))
    place = f"{spec.name} in {spec.dtype} on {runtime.model.device.type}, {runtime.num_threads} threads"
    return live.run(ask.seed, predictor, place, on_step, cancelled)


def _predicted(runtime: Runtime, traffic: LiveTraffic) -> tuple[LiveTraffic, Callable | None, str]:
    """Returns the traffic, who is asked about it while it runs, and in words what predicts: the model's own network where there is one
    that is better than the logistic rule, else that."""
    from engine.prefix.predictor import find_better
    from engine.prefix.predictor_rule import load_rule

    learned = find_better(runtime.model.spec, runtime.model.device, runtime.settings.cache_dir)
    if learned is not None:
        return traffic.predicted(None, 0), learned.probability, learned.described
    rule = load_rule()
    return traffic.predicted_by(rule), None, rule.described


def _point(step: LiveStep) -> LivePoint:
    served, queues = step.served, step.held.queues
    return LivePoint(
        policy=step.policy,
        index=step.index,
        kind=step.kind,
        ttft_s=served.first.ttft_s,
        prompt_tokens=served.num_tokens,
        hit_tokens=served.first.num_reused,
        num_evicted=len(served.evicted),
        queues=(int(queues[0]), int(queues[1]), int(queues[2]), int(queues[3])),
        num_free=step.held.num_free,
    )
