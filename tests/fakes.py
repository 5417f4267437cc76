"""A session that serves synthetic runs, so that the page runs without a model."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from chat_fakes import STATS, FakeKv, fake_chat
from fake_runs import ALL_METHODS, fake_run, harbour_scenario, injection_scenario
from results_samples import sample_results

from engine.chat.types import ChatRequest, ChatStatus, ChatToken, ChatTurn, PrefixStats
from engine.claims import Evidence
from engine.errors import BadRunFile, EngineError, ModelUnavailable
from engine.kernel_check import KernelReport, KernelRow
from engine.library.library import Library
from engine.library.types import DocumentInfo, IngestStatus
from engine.live_runs import LiveRuns
from engine.model.calibration import Calibration, LayerScore
from engine.replays import Replays
from engine.results import ResultSet
from engine.resultsfile import parse_results
from engine.scenarios import Scenario, find_scenario
from engine.serving.sglang_lane import SGLangLane
from engine.settings import Settings
from engine.turns import Turns
from engine.types import (
    FusionRequest,
    Run,
    Status,
)


def tiny_model_ready():
    """Returns the runtime of a tiny model: live runs of eviction are real ones."""
    from worlds import tiny_runtime

    return tiny_runtime(Path(tempfile.mkdtemp(prefix="fusescope-live-")))


@dataclass
class FakeSession:
    """Serves synthetic runs with the interface of engine.session.Session.

    Args:
        delay_s: pause between two status messages of a run.
        fail: a sentence that every run ends with, as an EngineError.
        kv_delay_s: what computing the KV of one chunk of the library takes; None computes none.
        held_by: the path of a file: while it is there, no run ends.
    """

    settings: Settings = field(default_factory=Settings)
    delay_s: float = 0.0
    fail: str | None = None
    with_recordings: bool = True
    names: Sequence[str] = ALL_METHODS
    recorded_methods: Sequence[str] = ("full", "reuse", "qcfuse")
    num_closed: int = 0
    model: str = "bundled"
    replays: Replays = field(default_factory=lambda: Replays(Turns()))
    live: LiveRuns = field(default_factory=lambda: LiveRuns(Turns(), tiny_model_ready))
    slot: threading.Lock = field(default_factory=threading.Lock)
    kv_delay_s: float | None = 0.0
    sglang: SGLangLane | None = None
    held_by: str = ""

    @cached_property
    def kv(self) -> FakeKv:
        """Returns what pretends to compute the KV of the library's chunks."""
        return FakeKv(self.kv_delay_s)

    @property
    def library(self) -> Library:
        """Returns a real library in a folder of its own."""
        return self.kv.library

    def add_document(self, owner: str, library: str, name: str, data: bytes) -> Iterator[IngestStatus | DocumentInfo]:
        """Yields the statuses of an upload, once it is over, and the document."""
        told: list[IngestStatus] = []
        document = self.library.add(owner, library, name, data, told.append)
        yield from told
        yield document

    def chat(self, request: ChatRequest, cancelled: Callable[[], bool] = lambda: False) -> Iterator[ChatStatus | ChatToken | ChatTurn]:
        """Yields a made-up turn word by word."""
        return fake_chat(request, self.delay_s, self.slot, cancelled)

    def prefix_stats(self) -> PrefixStats | None:
        """Returns made-up numbers."""
        return STATS

    def method_names(self) -> tuple[str, ...]:
        """Returns the methods on offer."""
        return tuple(self.names)

    def verify_kernels(self) -> KernelReport:
        """Returns one kernel that agrees, or the failure."""
        if self.fail:
            raise EngineError(self.fail)
        row = KernelRow("rotate_keys", "T=5 <b>", "float32", "torch", 1e-7, True, 0.5, None)
        return KernelReport(True, (row,), ("Triton is not here.",), "cpu")

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns a friendly and a hostile scenario."""
        return (harbour_scenario(), injection_scenario())

    def scenario(self, name: str) -> Scenario:
        """Returns a scenario by name, a bundled one too, as the library holds those. Raises UnknownName."""
        found = {scenario.name: scenario for scenario in self.scenarios()}
        return found[name] if name in found else find_scenario(name)

    def recorded(self, scenario: str) -> Run | None:
        """Returns a replay of the scenario's first question."""
        if not self.with_recordings:
            return None
        known = self.scenario(scenario)
        chunks = tuple(replace(chunk, text=chunk.text[:4000]) for chunk in known.chunks())
        return fake_run(known.request("q1", chunks=chunks, repeats=9), tuple(self.recorded_methods), mode="replay")

    def stream(self, request: FusionRequest, methods: tuple[str, ...]) -> Iterator[Status | Run]:
        """Yields statuses and then the run. A question that contains 'fail' ends in an EngineError, one with 'never ends' when closed."""
        while not self.slot.acquire(timeout=0.1):
            yield Status("Waiting", 0.0, 1)
        try:
            words = ["It", "was", "designed", "by", "Ilka", "Brandt."]
            for i in range(len(words) + 1):
                time.sleep(self.delay_s)
                answers = {name: " ".join(words[:i]) for name in methods}
                yield Status(f"Decoding answer token {i} of {len(words)}", i / len(words), 0, answers)
            while "never ends" in request.question or (self.held_by and Path(self.held_by).exists()):
                time.sleep(0.1)
                yield Status("Decoding answer token 6 of 6", 1.0, 0, answers)
            if self.fail or "fail" in request.question:
                raise EngineError(self.fail or "The chunk store is full (2 GiB); drop a chunk or raise FUSESCOPE_CHUNK_GIB.")
            chunks = tuple(replace(chunk, text=chunk.text[:20_000]) for chunk in request.chunks)
            yield fake_run(replace(request, chunks=chunks), methods)
        finally:
            self.slot.release()
            self.num_closed += 1

    def model_names(self) -> tuple[str, ...]:
        """Returns entries of the model selector."""
        return ("bundled", "Qwen/Qwen3-0.6B")

    def select_model(self, name: str) -> str:
        """Selects a known model. Raises ModelUnavailable for any other."""
        if name not in self.model_names():
            raise ModelUnavailable(f"The model {name!r} was not found here; the current one stays.")
        self.model = name
        return f"Model {name} is loaded."

    def model_line(self) -> str:
        """Returns one line about the model."""
        return "SmolLM2-135M-Instruct · float32 · cpu, 2 threads"

    def calibrations(self) -> tuple[Calibration, ...]:
        """Returns a measured table and one without a curve."""
        scores = tuple(LayerScore(i, 0.1 + i / 40, 0.02, 0.2 - i / 100 if i % 2 else None, 0.01 if i % 2 else None) for i in range(1, 12))
        measured = Calibration("tiny-llama", (9, 7, 11), "measured", "Measured on generated (n=20).", "2026-11-30", 20, 12, (), scores)
        return (measured, Calibration("Other-8B", (20, 21, 18), "paper", "arXiv 2606.05875, table 1.", "2026-06-04", 0, 36))

    def results(self) -> tuple[ResultSet, ...]:
        """Returns made-up results of two data sets."""
        return (sample_results("scenarios", 10, "fuse-scenarios"), sample_results())

    def results_left_out(self) -> tuple[str, ...]:
        """Returns no complaint."""
        return ()

    def open_results(self, data: bytes) -> ResultSet:
        """Returns the set of a real results file. Raises BadResultsFile."""
        return parse_results(data)

    def evidence(self) -> Evidence:
        """Returns the made-up results and one recorded run."""
        run = self.recorded("harbour")
        return Evidence(self.results(), (run,) if run else ())


class FakeRunFiles:
    """Stands in for engine.runfile: a file is a number that names a run kept in memory."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def dump_run(self, run: Run) -> bytes:
        """Keeps a run and returns its number."""
        self._runs.append(run)
        return str(len(self._runs) - 1).encode()

    def parse_run(self, data: bytes) -> Run:
        """Returns a kept run. Raises BadRunFile."""
        if not data.isdigit() or int(data) >= len(self._runs):
            raise BadRunFile("This is not a run file of Fusescope; choose one saved with “Download this run”.")
        run = self._runs[int(data)]
        return replace(run, provenance=replace(run.provenance, mode="replay"))
