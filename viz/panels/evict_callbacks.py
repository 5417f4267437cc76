"""What happens on the Evict tab: parse, one call of the session, values to show. Components are named in evict.py."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any

import gradio as gr

from engine.cache_types import CacheRun
from engine.errors import BadRunFile, Cancelled, EngineError
from engine.types import Status
from viz import theme
from viz.figures.evict_capacity import capacity_points, share_of
from viz.panels.contract import ReplaysLike
from viz.panels.evict_board import Board, board_of, first_policy, joined, recorded_points, slim
from viz.panels.evict_download import write_cache_run
from viz.panels.evict_form import OWN_LOG, Job, job_of, parse_job, workload_choices
from viz.panels.evict_tables import victims_table
from viz.panels.evict_view import EMPTY, policy_view, rates_view, setting_view
from viz.panels.fuse_view import status
from viz.panels.live import failed
from viz.panels.players import pack

Outputs = list[Any]
MIN_GAP_S, DEBOUNCE_S, PATIENCE_S, NUM_VICTIMS = 0.22, 0.25, 3.0, 200
NUM_SHOWN, NUM_VIEW = 28, 4 + 8 + 12


class Running(Event):
    """Stops a job where it is set, and lets it be begun once, however many events hear of it."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = Lock()

    def claim(self) -> bool:
        """Whether the caller is the first to begin."""
        return self._begun.acquire(blocking=False)


@dataclass(frozen=True, slots=True)
class EvictCallbacks:
    """Callbacks of one page; holds nothing of a visitor."""

    replays: ReplaysLike

    def open_tab(self, board: Board | None, workload: str) -> Outputs:
        """Returns board, status and slider when the tab is opened: the recorded runs, unless something is shown already."""
        return [gr.skip()] * 3 if board is not None else self._recorded(workload)[:3]

    def choose(self, running: Running | None, workload: str, log: str | None, capacity: str, *form: Any) -> Outputs:
        """Returns board, slider, capacity, then what `begin` returns, of another load: its recorded runs, or a job to replay it."""
        if workload == OWN_LOG or not self._has_recording(workload):
            return [gr.skip()] * 3 + self.begin(running, workload, log, capacity, *form)
        _stop(running)
        board, told, slider = self._recorded(workload)
        return [board, slider, gr.skip() if board is None else _percent(board.first), told, None, None]

    def begin(self, running: Running | None, workload: str, log: str | None, capacity: Any, *form: Any, sweep: bool = False) -> Outputs:
        """Returns status, job and what stops it; what still runs is overtaken. The job is None where the form does not hold."""
        try:
            job = parse_job(self.replays, workload, log, capacity, *form, sweep=sweep)
        except EngineError as error:
            return [failed(error), None, gr.skip()]
        _stop(running)
        return [pack(status("busy", "Waiting for the engine; it does one thing at a time.")), job, Running()]

    def slide(self, running: Running | None, workload: str, log: str | None, share: float, *form: Any) -> Outputs:
        """Returns what `begin` returns, for the slider's capacity."""
        return self.begin(running, workload, log, f"{share} %", *form)

    def sweep(self, running: Running | None, *form: Any) -> Outputs:
        """Returns what `begin` returns, for the whole curve."""
        return self.begin(running, *form, sweep=True)

    def stopped(self, running: Running | None) -> Any:
        """Returns the status after Stop."""
        _stop(running)
        return pack(status("idle", "Stopped. What was replayed before is still shown."))

    def run(self, job: Job | None, running: Running | None, board: Board | None) -> Iterator[Outputs]:
        """Yields status and board; the board stays what it was until all runs are whole."""
        if job is None or running is None or not running.claim():
            yield [gr.skip(), gr.skip()]
            return
        # A slider that is dragged asks many times: whoever is overtaken meanwhile begins no work.
        running.wait(DEBOUNCE_S)
        begun, runs = time.monotonic(), []
        try:
            with closing(self.replays.stream(job.requests, running.is_set)) as items:
                for item in _thinned(items):
                    if isinstance(item, Status):
                        yield [pack(status("busy", item.message, item.fraction)), gr.skip()]
                    else:
                        runs.append(slim(item) if job.is_sweep or item.seed else item)
        except Cancelled:
            # Whoever stopped it has said so.
            yield [gr.skip(), gr.skip()]
        except EngineError as error:
            yield [failed(error), gr.skip()]
        else:
            done = f"{len(runs)} replays in {time.monotonic() - begun:.1f} s."
            yield [pack(status("done", done)), _next_board(board, tuple(runs), job)]

    def show(self, board: Board | None, shown: Board | None, policy: str | None, unit: str) -> Outputs:
        """Returns shown board, policy selector, download, moment, then RatesView, SettingView and PolicyView."""
        if board is shown and board is not None:
            return [gr.skip()] * NUM_SHOWN
        names = board.policies if board else ()
        name = policy if policy in names else (first_policy(names) if names else None)
        last = board.first.num_requests - 1 if board else 1
        return [
            board,
            gr.Radio([(theme.policy_style(n).label, n) for n in names], value=name),
            write_cache_run(self.replays, board, name),
            gr.Slider(maximum=max(1, last), value=last * 3 // 4),
            *_packed([*rates_view(board, _unit(unit)), *setting_view(board), *policy_view(board, name)]),
        ]

    def look(self, board: Board | None, policy: str | None) -> Outputs:
        """Returns download and PolicyView for another policy."""
        return [write_cache_run(self.replays, board, policy), *_packed([*policy_view(board, policy)])]

    def count(self, board: Board | None, unit: str) -> Outputs:
        """Returns RatesView for another unit."""
        return _packed([*rates_view(board, _unit(unit))])

    def victims(self, board: Board | None, policy: str | None, moment: float, looked_at: bool = True) -> Any:
        """Returns the table of the next victims, if it is looked at; where a replay takes long, what to press for them."""
        if not looked_at:
            return gr.skip()
        if board is not None and board.run(policy).elapsed_s > PATIENCE_S:
            wait = f"To ask, the load is replayed once more: about {board.run(policy).elapsed_s:.0f} s. Press “Ask the policy”."
            return pack(victims_table((), board.run(policy).policy, None, wait, board.badge))
        return self.ask(board, policy, moment)

    def ask(self, board: Board | None, policy: str | None, moment: float) -> Any:
        """Returns the table of the next victims, whatever it takes."""
        run = board.run(policy) if board else None
        request = board.job.of(run.policy) if board and board.job and run else None
        if board is None or run is None or request is None:
            kept = "A live run keeps no reasons" if board and board.kind == "live" else "The file holds no reasons"
            why = EMPTY if board is None else f"{kept}: replay a load here to ask the policy."
            return pack(victims_table((), run.policy if run else "saecache", None, why, board.badge if board else ""))
        try:
            found = self.replays.victims(request, int(moment), NUM_VICTIMS)
        except EngineError as error:
            gr.Warning(str(error).replace("<", "‹").replace(">", "›"), title="Not asked")
            return pack(victims_table((), run.policy, None, str(error), board.badge))
        return pack(victims_table(found, run.policy, run, "Nothing leaves from this moment on.", board.badge))

    def open_log(self, path: str | None) -> Outputs:
        """Returns log, load selector and status after a log was chosen."""
        told = "The log is chosen; it is read and replayed now."
        choices = workload_choices(self.replays, path)
        return [path, gr.Dropdown(choices, value=OWN_LOG), pack(status("busy", told))]

    def open_runs(self, files: list[bytes] | bytes | None) -> Outputs:
        """Returns status and board of chosen files; what was shown stays where one does not hold."""
        data = files if isinstance(files, list) else [files or b""]
        try:
            runs = tuple(_checked(self.replays.open(one)) for one in data)
        except EngineError as error:
            return [failed(error), gr.skip()]
        return [pack(status("done", f"{len(runs)} file{'s are' if len(runs) > 1 else ' is'} shown.")), board_of(runs, "file")]

    def _has_recording(self, workload: str) -> bool:
        return isinstance(workload, str) and self.replays.has_recording(workload)

    def _recorded(self, workload: str) -> Outputs:
        try:
            runs, rows = self.replays.recorded(workload), self.replays.recorded_curve(workload)
        except EngineError as error:
            return [None, failed(error), gr.skip()]
        if not runs:
            return [None, pack(status("idle", EMPTY)), gr.skip()]
        told = pack(status("idle", "Recorded runs are shown. Move the capacity, or press Replay, to replay it here."))
        board = board_of(runs, "recorded", job_of(runs), recorded_points(rows))
        return [board, told, gr.Slider(value=100 * share_of(runs[0]))]


def _stop(running: Running | None) -> None:
    """Stops what a visitor has running."""
    if running is not None:
        running.set()


def _next_board(board: Board | None, runs: tuple[CacheRun, ...], job: Job) -> Board:
    """Returns the board after a job: rates of the same load, predictor and source are kept, those of another are not."""
    same = board is not None and _source(board.first) == _source(runs[0])
    before = board.points if board is not None and same else ()
    if job.is_sweep:
        if board is not None and same:
            return replace(board, points=joined(before, capacity_points(runs)))
        middle = runs[len(runs) // 2].capacity_blocks
        return board_of(tuple(run for run in runs if run.capacity_blocks == middle), "replayed", None, capacity_points(runs))
    return board_of(runs, "replayed", job, before)


def _source(run: CacheRun) -> tuple[str, str, int]:
    return (run.workload, run.predictor, run.num_requests)


def _thinned(items: Iterator[Status | CacheRun]) -> Iterator[Status | CacheRun]:
    """Yields at most about four statuses a second, and every run."""
    last = 0.0
    for item in items:
        now = time.monotonic()
        if isinstance(item, CacheRun) or now - last >= MIN_GAP_S:
            last = last if isinstance(item, CacheRun) else now
            yield item


def _checked(run: CacheRun) -> CacheRun:
    if not run.num_requests or run.num_blocks < 1 or run.capacity_blocks < 1:
        raise BadRunFile("The cache run holds no requests or no room; choose one that was saved by Fusescope.")
    return run


def _percent(run: CacheRun) -> str:
    return f"{100 * share_of(run):g} %"


def _unit(unit: str) -> Any:
    return "blocks" if unit == "blocks" else "tokens"


def _packed(values: Outputs) -> Outputs:
    return [pack(value) if isinstance(value, dict | str) or value is None else value for value in values]
