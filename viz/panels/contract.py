"""What the panels ask of the engine: the Session and the run files, as structural types."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from engine.cache_types import CacheRun, LiveAsk, LivePoint, ReplayRequest
from engine.chat.types import ChatRequest, ChatStatus, ChatToken, ChatTurn, PrefixStats
from engine.claims import Evidence
from engine.eviction_game import EvictionGame
from engine.kernel_check import KernelReport
from engine.library.types import ChunkInfo, DocumentInfo, Found, IngestStatus, KvProgress, LibraryInfo
from engine.model.calibration import Calibration
from engine.replay_victims import Victim
from engine.replays import CurveRow
from engine.results import ResultSet
from engine.scenarios import Scenario
from engine.settings import Settings
from engine.types import FusionRequest, Run, Status


class ReplaysLike(Protocol):
    """Eviction policies over loads; engine.replays.Replays has this shape."""

    def policy_names(self) -> tuple[str, ...]:
        """Returns the names of all policies."""

    def workload_names(self) -> tuple[str, ...]:
        """Returns the names of the generated workloads."""

    def has_recording(self, workload: str) -> bool:
        """Whether runs of a workload are shipped."""

    def recorded(self, workload: str) -> tuple[CacheRun, ...]:
        """Returns the shipped runs of a workload. Raises BadRunFile."""

    def recorded_curve(self, workload: str) -> tuple[CurveRow, ...]:
        """Returns the shipped rates of a workload at several capacities. Raises BadResultsFile."""

    def open(self, data: bytes) -> CacheRun:
        """Returns the run in a file's bytes. Raises BadRunFile."""

    def dump(self, run: CacheRun) -> bytes:
        """Returns a run as a file's bytes."""

    def stream(self, requests: Sequence[ReplayRequest], cancelled: Callable[[], bool]) -> Iterator[Status | CacheRun]:
        """Yields statuses, and each run once it is whole; closing it cancels. Raises Cancelled and other EngineErrors."""

    def victims(self, request: ReplayRequest, moment: int, count: int) -> tuple[Victim, ...]:
        """Returns the next blocks to leave from a request on, with reasons. Raises EngineError."""

    def game(self, workload: str, capacity: float, seed: int) -> EvictionGame:
        """Returns ten moments to choose a victim at. Raises EngineError."""


class LibraryLike(Protocol):
    """Documents of visitors and scenarios; engine.library.library.Library has this shape. Every method may raise EngineError."""

    def libraries(self, owner: str) -> tuple[LibraryInfo, ...]:
        """Returns the owner's libraries, then the shared ones."""

    def documents(self, owner: str, library: str) -> tuple[DocumentInfo, ...]:
        """Returns the documents of a library, oldest first."""

    def chunks(self, owner: str, library: str, document: str | None = None) -> tuple[ChunkInfo, ...]:
        """Returns the chunks of a library or of one document, in reading order."""

    def chunk(self, owner: str, chunk_id: str) -> ChunkInfo:
        """Returns one chunk."""

    def search(self, owner: str, library: str, query: str, num: int = 5, documents: Sequence[str] | None = None) -> tuple[Found, ...]:
        """Returns the best chunks for a query, best first, out of the documents of these ids; out of all where None."""

    def remove(self, owner: str, document: str) -> None:
        """Deletes a document."""

    def remove_owner(self, owner: str) -> int:
        """Deletes all that an owner has and returns the number of documents."""

    def new_library(self, owner: str, name: str) -> LibraryInfo:
        """Makes an empty library."""

    def rename(self, owner: str, name: str, new_name: str) -> LibraryInfo:
        """Renames one of the owner's libraries."""

    def remove_library(self, owner: str, name: str) -> int:
        """Deletes one of the owner's libraries and returns how many documents were in it."""

    def kv_progress(self, owner: str) -> KvProgress:
        """Returns how far the KV of the owner's documents is."""

    def cancel_kv(self, owner: str, document: str) -> None:
        """Stops computing a document's KV ahead."""

    def resume_kv(self, owner: str, document: str) -> None:
        """Has a document's KV computed ahead after all."""


class LiveRunsLike(Protocol):
    """Live runs of eviction policies on the loaded model; engine.live_runs.LiveRuns has this shape."""

    def policy_names(self) -> tuple[str, ...]:
        """Returns the names of policies that can run live."""

    def stream(self, ask: LiveAsk, cancelled: Callable[[], bool]) -> Iterator[Status | LivePoint | CacheRun]:
        """Yields statuses, requests as they are served and, last, a run a policy; closing it cancels. Raises EngineErrors."""


class LaneLike(Protocol):
    """A server that requests may be sent to as well; engine.serving.sglang_lane.SGLangLane has this shape."""

    @property
    def label(self) -> str:
        """Returns how people are told of the server."""

    def stream(self, request: FusionRequest, methods: tuple[str, ...]) -> Iterator[Status | Run]:
        """Yields statuses and last the run; closing it cancels. Raises EngineError."""


class SessionLike(Protocol):
    """The one door to the engine; engine.session.Session and the tests' FakeSession have this shape."""

    settings: Settings
    replays: ReplaysLike
    sglang: LaneLike | None

    @property
    def library(self) -> LibraryLike:
        """Returns the library, opened when it is first asked for."""

    def add_document(self, owner: str, library: str, name: str, data: bytes) -> Iterator[IngestStatus | DocumentInfo]:
        """Yields statuses and last the document, added to a library that is made when missing; closing it stops. Raises EngineError."""

    def chat(self, request: ChatRequest, cancelled: Callable[[], bool] = ...) -> Iterator[ChatStatus | ChatToken | ChatTurn]:
        """Yields statuses, the answer's pieces and last the turn; closing it or `cancelled` stops it. Raises EngineError."""

    def prefix_stats(self) -> PrefixStats | None:
        """Returns what the prefix cache of conversations holds, or None before there is one."""

    def method_names(self) -> tuple[str, ...]:
        """Returns the methods on offer."""

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns the bundled scenarios."""

    def scenario(self, name: str) -> Scenario:
        """Returns one scenario. Raises UnknownName."""

    def recorded(self, scenario: str) -> Run | None:
        """Returns a recorded run of a scenario, or None."""

    def stream(self, request: FusionRequest, methods: tuple[str, ...]) -> Iterator[Status | Run]:
        """Yields statuses and last the run; closing it cancels. Raises EngineError."""

    def model_names(self) -> tuple[str, ...]:
        """Returns entries for the model selector."""

    def select_model(self, name: str) -> str:
        """Loads a model and returns one sentence. Raises ModelUnavailable and keeps the current one."""

    def model_line(self) -> str:
        """Returns one line about the model in use."""

    def calibrations(self) -> tuple[Calibration, ...]:
        """Returns the tables of critical layers, that of the model in use first."""

    def verify_kernels(self) -> KernelReport:
        """Returns how far this machine's kernels are from their references. Raises BackendUnavailable."""

    def results(self) -> tuple[ResultSet, ...]:
        """Returns the shipped benchmark results."""

    def results_left_out(self) -> tuple[str, ...]:
        """Returns one sentence on each results file that could not be read."""

    def open_results(self, data: bytes) -> ResultSet:
        """Returns the result set in a file's bytes. Raises BadResultsFile."""

    def evidence(self) -> Evidence:
        """Returns what published claims are judged by."""


class RunFiles(Protocol):
    """Writes and reads run files; engine.runfile has this shape."""

    def dump_run(self, run: Run) -> bytes:
        """Returns the file's bytes."""

    def parse_run(self, data: bytes) -> Run:
        """Returns the run of a file. Raises BadRunFile."""
