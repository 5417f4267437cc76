"""The one door of the app, the command line and the API: scenarios, models, runs. Light until a model is needed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.claims.claim import Evidence
from engine.errors import BadRequest, EngineError, StoreError
from engine.method_list import method_names
from engine.results import ResultSet
from engine.resultsfile import load_folder, parse_results
from engine.runfile import load_run
from engine.scenarios import Scenario, find_scenario, load_scenarios
from engine.settings import Settings
from engine.turns import Turns
from engine.types import FusionRequest, Run, Status

if TYPE_CHECKING:
    from engine.model.calibration import Calibration
    from engine.runtime import Runtime

BUNDLED = "SmolLM2-135M-Instruct"
RECORDED_DIR = Path(__file__).resolve().parent.parent / "assets" / "runs"
SUGGESTED_MODELS = ("bundled", "Qwen/Qwen2.5-0.5B-Instruct", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B-Instruct")
Progress = Callable[[str, float], None]


class Session:
    """Everything one process serves. Thread-safe: requests wait for their turn, one runs at a time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._turns, self._loading = Turns(), threading.Lock()
        self._runtime: Runtime | None = None
        self._model_line = "The model is loaded with the first run."

    def preload(self) -> None:
        """Begins to load the model in the background, so that the first visitor does not wait for it."""
        threading.Thread(target=self._preload, name="preload", daemon=True).start()

    def method_names(self) -> tuple[str, ...]:
        """Returns the names of all fusion methods and of the combinations offered beside them."""
        return method_names()

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns the bundled scenarios."""
        return tuple(load_scenarios().values())

    def scenario(self, name: str) -> Scenario:
        """Returns one scenario. Raises UnknownName."""
        return find_scenario(name)

    def recorded(self, scenario: str) -> Run | None:
        """Returns the recorded run of a scenario, labelled replay, or None where none is shipped. Raises BadRunFile."""
        path = RECORDED_DIR / f"{scenario}.run.json.gz"
        return as_replay(load_run(path)) if path.is_file() else None

    def model_names(self) -> tuple[str, ...]:
        """Returns models to offer; any hub id or local path may be given instead."""
        return tuple(dict.fromkeys((self.settings.model, *SUGGESTED_MODELS)))

    def calibrations(self) -> tuple[Calibration, ...]:
        """Returns the tables of critical layers: of the model in use first, then all others that are known."""
        from engine.model.calibration import known_calibrations

        known = known_calibrations(self.settings.cache_dir)
        used = (self._runtime.calibration,) if self._runtime else tuple(table for table in known if table.model == BUNDLED)
        return (*used, *(table for table in known if table.model not in {table.model for table in used}))

    def model_line(self) -> str:
        """Returns one line on the model that runs, or on why none does."""
        return self._model_line

    def select_model(self, name: str) -> str:
        """Loads another model and returns one sentence. Raises ModelUnavailable and keeps the current one."""
        if not name.strip():
            raise BadRequest("No model is named; give a Hugging Face id, a local path or 'bundled'.")
        from engine.runtime import load_runtime

        with self._turns.turn(lambda ahead: None, lambda: False):
            self._adopt(load_runtime(name.strip(), self.settings, self._runtime.store if self._runtime else None))
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
        with self._turns.turn(waiting, cancelled):
            return self._run(request, methods, on_status, cancelled)

    def stream(self, request: FusionRequest, methods: tuple[str, ...]) -> Iterator[Status | Run]:
        """Yields what the request is doing and, last, its run; closing the iterator stops it. Raises EngineError."""
        events: queue.SimpleQueue[Status | None] = queue.SimpleQueue()
        stopped = threading.Event()
        worker = ThreadPoolExecutor(1, thread_name_prefix="run")
        done = worker.submit(self.run, request, methods, events.put, stopped.is_set)
        done.add_done_callback(lambda future: events.put(None))
        try:
            while (status := _latest(events)) is not None:
                yield status
            yield done.result()
        finally:
            stopped.set()
            worker.shutdown(wait=False)

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
        """Returns what published claims are judged by: results, recorded runs and calibration tables that are shipped."""
        from engine.claims.shipped import layer_tables

        runs = (self.recorded(scenario.name) for scenario in self.scenarios())
        return Evidence(self.results(), tuple(run for run in runs if run), layer_tables())

    def _run(
        self, request: FusionRequest, methods: tuple[str, ...], on_status: Callable[[Status], None], cancelled: Callable[[], bool]
    ) -> Run:
        from engine.compare import compare

        answers: dict[str, str] = {}
        last = Status("Loading the model", 0.0)

        def progress(text: str, share: float) -> None:
            nonlocal last
            last = Status(text, share, answers=dict(answers))
            on_status(last)

        def on_answer(method: str, text: str) -> None:
            answers[method] = text
            on_status(replace(last, answers=dict(answers)))

        on_status(last)
        runtime = self._ready()
        try:
            return compare(runtime, request, methods, progress, on_answer, cancelled)
        except StoreError as error:
            # A file vanished or broke under the request: the store has set it aside, so the chunk is computed anew.
            progress(f"{error} It is computed again.", 0.0)
            return compare(runtime, request, methods, progress, on_answer, cancelled)

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
        self._model_line = f"{spec.name} · {spec.dtype} · {runtime.model.device.type}, {runtime.num_threads} threads"

    def _preload(self) -> None:
        self._model_line = "Loading the model …"
        try:
            self._ready()
        except EngineError as error:
            self._model_line = str(error)


def as_replay(run: Run) -> Run:
    """Returns a run labelled as recorded."""
    return replace(run, provenance=replace(run.provenance, mode="replay"))


def _latest(events: queue.SimpleQueue[Status | None]) -> Status | None:
    """Returns the next event; of several waiting ones the newest, so that a slow page does not fall behind."""
    event = events.get()
    while event is not None and not events.empty():
        event = events.get()
    return event
