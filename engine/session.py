"""The one door of the app, the command line and the API: scenarios, models, runs. Light until a model is needed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.arenas import share_one_arena
from engine.cache_types import CacheRun, ReplayRequest
from engine.chat.chats import Chats
from engine.chat.types import ChatRequest, ChatStatus, ChatToken, ChatTurn, PrefixStats
from engine.claims.claim import Evidence
from engine.errors import BadRequest, EngineError, ModelUnavailable
from engine.gpu_calls import GpuCalls
from engine.health import Health, HealthState
from engine.kernel_check import KernelReport, verify_kernels
from engine.library.library import Library
from engine.library.service import Documents
from engine.library.types import DocumentInfo, IngestStatus
from engine.live_runs import LiveRuns
from engine.method_list import method_names
from engine.outcomes import Outcomes
from engine.replays import Replays
from engine.results import ResultSet
from engine.resultsfile import load_folder, parse_results
from engine.runfile import load_run
from engine.scenarios import OPENING, Scenario, find_scenario, load_scenarios
from engine.serving.sglang_lane import SGLangLane
from engine.settings import Settings
from engine.told import compare_told
from engine.turns import Turns, within
from engine.types import FusionRequest, Run, Status

if TYPE_CHECKING:
    from engine.model.calibration import Calibration
    from engine.prefix.cost import PrefillCost
    from engine.runtime import Runtime

BUNDLED = "SmolLM2-135M-Instruct"
RECORDED_DIR = Path(__file__).resolve().parent.parent / "assets" / "runs"
SUGGESTED_MODELS = ("bundled", "Qwen/Qwen2.5-0.5B-Instruct", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B-Instruct")
Progress = Callable[[str, float], None]


class Session:
    """Everything one process serves. Thread-safe: requests wait for their turn, one runs at a time."""

    def __init__(self, settings: Settings, gpu: GpuCalls | None = None) -> None:
        share_one_arena()
        self.settings, self._gpu, self._model = settings, gpu, settings.model
        self._turns, self._loading = Turns(settings.protection.max_waiting), threading.Lock()
        self.outcomes = Outcomes()
        self.replays = Replays(self._turns, cost=self._prefill_cost, limit_s=settings.protection.replay_s)
        self.live = LiveRuns(self._turns, self._ready, lambda cancelled: within(settings.protection.timeout_s, cancelled))
        lane = (self._turns, self.outcomes, self._ready, settings.protection.timeout_s)
        self.sglang = SGLangLane(settings.sglang_url, *lane) if settings.sglang_url else None
        self._chats = Chats(self._turns, self.outcomes, self._ready, settings.protection.timeout_s)
        self._documents = Documents(settings, self._turns, self._ready, lambda: self._runtime)
        self.outcomes.listen(self._documents.note)
        self._runtime: Runtime | None = None
        self._state: HealthState = "idle"
        self._model_line = "The model is loaded with the first run."

    def preload(self) -> None:
        """Begins to load the model in the background, so that the first visitor does not wait for it."""
        threading.Thread(target=self._preload, name="preload", daemon=True).start()

    def method_names(self) -> tuple[str, ...]:
        """Returns the names of all fusion methods and of the combinations offered beside them."""
        return method_names()

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns the bundled scenarios, in order of name behind the one that the page opens with."""
        return tuple(sorted(load_scenarios().values(), key=lambda scenario: scenario.name != OPENING))

    def scenario(self, name: str) -> Scenario:
        """Returns one scenario. Raises UnknownName."""
        return find_scenario(name)

    def recorded(self, scenario: str) -> Run | None:
        """Returns the recorded run of a scenario, labelled replay, or None where none is shipped. Raises BadRunFile."""
        path = RECORDED_DIR / f"{scenario}.run.json.gz"
        return as_replay(load_run(path)) if path.is_file() else None

    def model_names(self) -> tuple[str, ...]:
        """Returns models to offer; any hub id or local path may be given instead, in public only these."""
        offered = self.settings.protection.models if self.settings.protection.public else SUGGESTED_MODELS
        return tuple(dict.fromkeys((self.settings.model, *offered)))

    def calibrations(self) -> tuple[Calibration, ...]:
        """Returns the tables of critical layers: of the model in use first, then all others that are known."""
        from engine.model.calibration import known_calibrations

        known = known_calibrations(self.settings.cache_dir)
        used = (self._runtime.calibration,) if self._runtime else tuple(table for table in known if table.model == BUNDLED)
        return (*used, *(table for table in known if table.model not in {table.model for table in used}))

    def health(self) -> Health:
        """Returns whether the model is there."""
        return Health(self._state if self._runtime is None else "ready", self._runtime and self._runtime.model.spec.name, self._model_line)

    @property
    def num_waiting(self) -> int:
        """Returns how many requests wait for the engine."""
        return self._turns.num_waiting

    def model_line(self) -> str:
        """Returns one line on the model that runs, or on why none does."""
        return self._model_line

    def select_model(self, name: str) -> str:
        """Loads another model and returns one sentence. Raises ModelUnavailable and keeps the current one."""
        if not name.strip():
            raise BadRequest("No model is named; give a Hugging Face id, a local path or 'bundled'.")
        if self.settings.protection.public and name.strip() not in self.model_names():
            raise ModelUnavailable(f"The model {name.strip()[:80]!r} is not offered here; choose among: {', '.join(self.model_names())}.")
        from engine.runtime import load_runtime

        with self._turns.turn(lambda ahead: None, lambda: False):
            self._adopt(load_runtime(name.strip(), self.settings, self._runtime.store if self._runtime else None))
            self._model = name.strip()
            self._chats.forget()
        self._documents.wake()
        return f"Ready: {self._model_line}"

    def run(
        self,
        request: FusionRequest,
        methods: tuple[str, ...],
        on_status: Callable[[Status], None] = lambda status: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Run:
        """Returns the run of a request, waiting for its turn. Raises EngineError."""
        if not methods:
            raise BadRequest("No method is selected; choose at least one, full prefill among them to compare with.")
        from engine.fusion.compose import parse_name

        for name in methods:
            parse_name(name)
        waiting = lambda ahead: on_status(Status(f"Waiting: {ahead} request{'s' if ahead > 1 else ''} ahead", 0.0, ahead))  # noqa: E731
        with self.outcomes.errors_told(), self._turns.turn(waiting, cancelled):
            run = self._run(request, methods, on_status, within(self.settings.protection.timeout_s, cancelled))
        self.outcomes.tell(run)
        return run

    def stream(self, request: FusionRequest, methods: tuple[str, ...]) -> Iterator[Status | Run]:
        """Yields what the request is doing and, last, its run; closing the iterator stops it. Raises EngineError."""
        events: queue.SimpleQueue[Status | None] = queue.SimpleQueue()
        stopped = threading.Event()
        worker = ThreadPoolExecutor(1, thread_name_prefix="run")
        # What lends a GPU learns from the context whose request it is.
        done = worker.submit(copy_context().run, self.run, request, methods, events.put, stopped.is_set)
        done.add_done_callback(lambda future: events.put(None))
        try:
            while (status := _latest(events)) is not None:
                yield status
            yield done.result()
        finally:
            stopped.set()
            worker.shutdown(wait=False)

    def chat(self, request: ChatRequest, cancelled: Callable[[], bool] = lambda: False) -> Iterator[ChatStatus | ChatToken | ChatTurn]:
        """Yields what a turn is doing, its answer piece by piece and, last, the turn; closing the iterator stops it. Raises EngineError."""
        return self._chats.stream(request, cancelled)

    def prefix_stats(self) -> PrefixStats | None:
        """Returns the conversations' prefix cache as it was after the last turn; None before the first one."""
        return self._chats.prefix_stats()

    @property
    def library(self) -> Library:
        """Returns the documents to ask about, scenarios among them; opened when first asked for. Raises LibraryUnavailable."""
        return self._documents.library

    def add_document(self, owner: str, library: str, name: str, data: bytes) -> Iterator[IngestStatus | DocumentInfo]:
        """Yields what an upload is doing and, last, the document; closing the iterator stops it. See `Documents.add`."""
        return self._documents.add(owner, library, name, data)

    def replay(
        self,
        request: ReplayRequest,
        on_status: Callable[[Status], None] = lambda status: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> CacheRun:
        """Returns one policy's run over a workload, judged against the limit, waiting for its turn. Raises EngineError."""
        return self.replays.run((request,), on_status, cancelled)[0]

    def verify_kernels(self) -> KernelReport:
        """Returns how far this machine's kernels are from their references; waits for its turn. Raises BackendUnavailable."""
        with self._turns.turn(lambda ahead: None, lambda: False):
            return verify_kernels(self.settings)

    def results(self) -> tuple[ResultSet, ...]:
        """Returns the shipped benchmark results, labelled as recorded."""
        return load_folder().sets

    def results_left_out(self) -> tuple[str, ...]:
        """Returns one sentence on each results file that could not be read."""
        return load_folder().problems

    def open_results(self, data: bytes) -> ResultSet:
        """Returns the set in a file's bytes; it is not kept. Raises BadResultsFile."""
        return parse_results(data)

    def evidence(self) -> Evidence:
        """Returns what published claims are judged by: results, recorded runs, calibration tables and predictors' cards that ship."""
        from engine.claims.evictions import eviction_sets, live_sets, predictor_figures
        from engine.claims.shipped import layer_tables

        runs = (self.recorded(scenario.name) for scenario in self.scenarios())
        shown = tuple(run for run in runs if run)
        return Evidence(self.results(), shown, layer_tables(), eviction_sets(), live_sets(), predictor_figures())

    def _run(
        self, request: FusionRequest, methods: tuple[str, ...], on_status: Callable[[Status], None], cancelled: Callable[[], bool]
    ) -> Run:
        if self._gpu is not None:
            return self._gpu.run(self._model, self.settings, request, methods, on_status, cancelled)
        return compare_told(self._ready, request, methods, on_status, cancelled)

    def _prefill_cost(self, on_status: Callable[[Status], None], cancelled: Callable[[], bool]) -> PrefillCost:
        """Returns what replays model times with: the loaded model's own prefill, timed once on this machine, else the stated default."""
        from engine.prefix.cost import PUBLISHED_8B

        if self._runtime is None:
            return PUBLISHED_8B
        from engine.prefill_costs import running_cost

        return running_cost(self._runtime, lambda share: on_status(Status("Timing the model's prefill, once", share)), cancelled)

    def _ready(self) -> Runtime:
        from engine.runtime import load_runtime

        with self._loading:
            if self._runtime is None:
                self._adopt(load_runtime(self.settings.model, self.settings))
            assert self._runtime is not None
            return self._runtime

    def _adopt(self, runtime: Runtime) -> None:
        spec = runtime.model.spec
        self._runtime = runtime
        lent = "" if self._gpu is None else "; runs of the Fuse tab on a lent GPU"
        self._model_line = f"{spec.name} · {spec.dtype} · {runtime.model.device.type}, {runtime.num_threads} threads{lent}"

    def _preload(self) -> None:
        self._state, self._model_line = "loading", "Loading the model …"
        try:
            self._ready()
        except EngineError as error:
            self._state, self._model_line = "failed", str(error)


def as_replay(run: Run) -> Run:
    """Returns a run labelled as recorded."""
    return replace(run, provenance=replace(run.provenance, mode="replay"))


def _latest(events: queue.SimpleQueue[Status | None]) -> Status | None:
    """Returns the next event; of several waiting ones the newest, so that a slow page does not fall behind."""
    event = events.get()
    while event is not None and not events.empty():
        event = events.get()
    return event
