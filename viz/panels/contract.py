"""What the panels ask of the engine: the Session and the run files, as structural types."""

from collections.abc import Iterator
from typing import Protocol

from engine.claims import Evidence
from engine.model.calibration import Calibration
from engine.results import ResultSet
from engine.scenarios import Scenario
from engine.settings import Settings
from engine.types import FusionRequest, Run, Status


class SessionLike(Protocol):
    """The one door to the engine; engine.session.Session and the tests' FakeSession have this shape."""

    settings: Settings

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
