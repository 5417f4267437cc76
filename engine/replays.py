"""Replays for the page and the command line: policies over one workload in turn, with progress, what they share worked out once.

Knows nothing of models or pictures; nothing here needs torch.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from engine.cache_types import CacheRun, ReplayRequest
from engine.errors import BadRequest, BadResultsFile, Cancelled
from engine.eviction_game import EvictionGame, make_game
from engine.prefix.cachefile import dump_cache_run, load_cache_run, parse_cache_run
from engine.prefix.cost import PUBLISHED_8B, PrefillCost
from engine.prefix.lab import ReplayLab, lab_names, lab_policy
from engine.prefix.predictor_rule import load_rule
from engine.prefix.sglang_tree import InSGLang
from engine.prefix.workloads.catalog import is_generated, load_workload, workload_names
from engine.replay_victims import Victim, next_victims
from engine.streaming import streamed
from engine.turns import Allowance, Turns
from engine.types import Status

RECORDED_DIR = Path(__file__).resolve().parent.parent / "assets" / "evict"
NUM_LABS, NUM_ANSWERS = 4, 16
OnStatus = Callable[[Status], None]
CostOf = Callable[[OnStatus, Callable[[], bool]], PrefillCost]


def published_cost(on_status: OnStatus, cancelled: Callable[[], bool]) -> PrefillCost:
    """Returns the stated prefill cost that counts where no model is loaded."""
    return PUBLISHED_8B


class RatePoint(msgspec.Struct, frozen=True):
    """A rate with the ends of its interval over seeds."""

    mean: float
    lo: float
    hi: float


class CurveRow(msgspec.Struct, frozen=True):
    """One policy at one capacity (a share of the distinct blocks), as the benchmark `evict` writes it; n seeds."""

    capacity: float
    capacity_blocks: int
    policy: str
    n: int
    hit_tokens_second_half: RatePoint


class _Curves(msgspec.Struct, frozen=True):
    rows: list[CurveRow]


class Replays:
    """Everything about eviction that one process serves. Thread-safe: replays take their turn with all other work of the engine.

    Args:
        turns: the engine's one slot; it is given up between two replays of a batch.
        folder: of the recorded runs.
        cost: what a prefill costs, asked once a batch while it has its turn.
        limit_s: engine time of one batch, waiting not counted; 0 for any.
    """

    def __init__(self, turns: Turns, folder: Path = RECORDED_DIR, cost: CostOf = published_cost, limit_s: float = 0.0) -> None:
        self._turns, self._folder, self._cost, self._limit_s = turns, folder, cost, limit_s
        self._lock = threading.Lock()
        self._labs: OrderedDict[tuple[str, int, float | None, bool], ReplayLab] = OrderedDict()
        self._answers: OrderedDict[object, Any] = OrderedDict()

    def policy_names(self) -> tuple[str, ...]:
        """Returns the names of all that can be replayed: policies, the limit among them, and SGLang's tree where it is installed."""
        return lab_names()

    def workload_names(self) -> tuple[str, ...]:
        """Returns the names of the generated workloads."""
        return workload_names()

    def is_generated(self, workload: str) -> bool:
        """Whether a name is a generated workload's."""
        return is_generated(workload)

    def has_recording(self, workload: str) -> bool:
        """Whether runs of a workload are shipped."""
        return is_generated(workload) and any(self._folder.glob(f"{workload}-*.cache.json.gz"))

    def recorded(self, workload: str) -> tuple[CacheRun, ...]:
        """Returns the shipped runs of a generated workload, none for any other. Raises BadRunFile."""
        if not is_generated(workload):
            return ()
        return tuple(load_cache_run(path) for path in sorted(self._folder.glob(f"{workload}-*.cache.json.gz")))

    def recorded_curve(self, workload: str) -> tuple[CurveRow, ...]:
        """Returns the shipped rates of a generated workload at several capacities. Raises BadResultsFile."""
        path = self._folder / f"{workload}.json"
        if not is_generated(workload) or not path.is_file():
            return ()
        try:
            return tuple(msgspec.json.decode(path.read_bytes(), type=_Curves).rows)
        except msgspec.DecodeError as error:
            raise BadResultsFile(f"{path.name} does not hold results of the benchmark evict: {str(error)[:150]}.") from None

    def open(self, data: bytes) -> CacheRun:
        """Returns the run in a file's bytes; it is not kept. Raises BadRunFile."""
        return parse_cache_run(data)

    def dump(self, run: CacheRun) -> bytes:
        """Returns a run as a file's bytes."""
        return dump_cache_run(run)

    def run(
        self,
        requests: Sequence[ReplayRequest],
        on_status: OnStatus = lambda status: None,
        cancelled: Callable[[], bool] = lambda: False,
        on_run: Callable[[CacheRun], None] = lambda run: None,
    ) -> tuple[CacheRun, ...]:
        """Returns the runs of several requests in their order, each judged against MIN. Raises EngineError, TimedOut among them.

        Args:
            on_run: called with each run once it is whole.
        """
        if not requests:
            raise BadRequest("No policy is chosen; tick at least one.")
        for request in requests:
            lab_policy(request.policy, **request.params)
        runs: list[CacheRun] = []
        cost: PrefillCost | None = None
        allowance = self._allowance(cancelled)
        for i, request in enumerate(requests):
            waiting = _Waiting(on_status, cancelled)
            with self._turns.turn(waiting.told, waiting.cancelled), allowance.used() as stopped:
                cost = cost or self._cost(on_status, stopped)
                runs.append(self._replay(request, cost, _Progress(i, len(requests), request.policy, on_status, stopped)))
            on_run(runs[-1])
        return tuple(runs)

    def stream(self, requests: Sequence[ReplayRequest], cancelled: Callable[[], bool] = lambda: False) -> Iterator[Status | CacheRun]:
        """Yields what is being done and each run once it is whole; closing the iterator stops it too. Raises EngineError."""
        return streamed(lambda put, stopped: self.run(requests, put, stopped, put), "replay", cancelled)

    def victims(self, request: ReplayRequest, moment: int, count: int = 8) -> tuple[Victim, ...]:
        """Returns the next blocks to leave from a request on, in order, each with the policy's reason. Raises EngineError."""
        asked = (request.workload, request.policy, request.capacity, request.seed, request.accuracy, request.by_rule)
        key = ("victims", *asked, moment, count)
        return self._answer(key, lambda: self._victims(request, moment, count))

    def game(self, workload: str, capacity: float, seed: int, accuracy: float | None = 0.77) -> EvictionGame:
        """Returns ten moments of a workload to choose a victim at. Raises EngineError."""
        return self._answer(("game", workload, capacity, seed, accuracy), lambda: self._game(workload, capacity, seed, accuracy))

    def _victims(self, request: ReplayRequest, moment: int, count: int) -> tuple[Victim, ...]:
        policy = lab_policy(request.policy, **request.params)
        if isinstance(policy, InSGLang):
            raise BadRequest(f"SGLang's tree gives no reasons; look into a policy of ours instead of {request.policy!r}.")
        with self._allowance(lambda: False).used() as stopped:
            lab = self._lab(request, _Progress(0, 1, request.policy, cancelled=stopped))
            return next_victims(lab, policy, lab.capacity(request.capacity), moment, count, stopped)

    def _game(self, workload: str, capacity: float, seed: int, accuracy: float | None) -> EvictionGame:
        request = ReplayRequest(workload, "saecache", capacity, seed, accuracy)
        lab = self._lab(request, _Progress(0, 1, request.policy))
        return make_game(lab, lab.capacity(capacity), seed)

    def _allowance(self, cancelled: Callable[[], bool]) -> Allowance:
        told = f"The replay took more than {self._limit_s:g} s of the engine's time; choose fewer policies or seeds, or a shorter load."
        return Allowance(self._limit_s, cancelled, told)

    def _replay(self, request: ReplayRequest, cost: PrefillCost, progress: "_Progress") -> CacheRun:
        policy = lab_policy(request.policy, **request.params)
        lab = self._lab(request, progress)
        run = lab.run(policy, lab.capacity(request.capacity), progress.replaying, cost)
        return replace(run, workload=Path(run.workload).name)

    def _lab(self, request: ReplayRequest, progress: "_Progress") -> ReplayLab:
        """Returns the workload ready to be replayed: one of the last few, or read anew."""
        key = (request.workload, request.seed, request.accuracy, request.by_rule)
        with self._lock:
            if key in self._labs:
                self._labs.move_to_end(key)
                return self._labs[key]
        workload = load_workload(request.workload, request.seed, progress=progress.reading)
        lab = ReplayLab(workload, request.seed, request.accuracy, rule=load_rule() if request.by_rule else None)
        with self._lock:
            self._labs[key] = lab
            while len(self._labs) > NUM_LABS:
                self._labs.popitem(last=False)
        return lab

    def _answer(self, key: object, compute: Callable[[], Any]) -> Any:
        """Returns what was worked out for a key, now or one of the last times."""
        with self._lock:
            if key in self._answers:
                return self._answers[key]
        with self._turns.turn(lambda ahead: None, lambda: False):
            found = compute()
        with self._lock:
            self._answers[key] = found
            while len(self._answers) > NUM_ANSWERS:
                self._answers.popitem(last=False)
        return found


class _Progress:
    """Tells how far a batch is, without ever going back, and stops it where its owner wishes."""

    def __init__(
        self,
        number: int,
        num: int,
        policy: str,
        on_status: OnStatus = lambda status: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._number, self._num, self._policy = number, num, policy
        self._on_status, self._cancelled, self._best = on_status, cancelled, 0.0

    def reading(self, num_rows: int) -> bool:
        """Tells how many lines of a log were read; False to stop."""
        self._on_status(Status(f"Reading the log: {num_rows:,} lines", self._number / self._num))
        return not self._cancelled()

    def replaying(self, share: float) -> bool:
        """Tells how far the replay is; False to stop."""
        self._best = max(self._best, share)
        text = f"Replaying {self._policy}, policy {self._number + 1} of {self._num}"
        self._on_status(Status(text, (self._number + self._best) / self._num))
        return not self._cancelled()


class _Waiting:
    """Tells how many are ahead, and again as long as that holds: only where something is told is it seen that nobody listens any more."""

    def __init__(self, on_status: OnStatus, cancelled: Callable[[], bool]) -> None:
        self._on_status, self._cancelled = on_status, cancelled
        self._status: Status | None = None

    def told(self, ahead: int) -> None:
        """Tells of another number."""
        self._status = Status(f"Waiting: {ahead} request{'s' if ahead > 1 else ''} ahead", 0.0, ahead)
        self._on_status(self._status)

    def cancelled(self) -> bool:
        """Whether the owner has given up; asked again and again while it waits."""
        if self._status is not None:
            self._on_status(self._status)
        return self._cancelled()


def replay(request: ReplayRequest, on_status: OnStatus = lambda status: None, cancelled: Callable[[], bool] = lambda: False) -> CacheRun:
    """Returns the run of one request, on its own. Raises EngineError."""
    if cancelled():
        raise Cancelled("Stopped.")
    return Replays(Turns()).run((request,), on_status, cancelled)[0]
