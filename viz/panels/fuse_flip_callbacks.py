"""What happens to the second question of the Fuse tab. Components are named in fuse_flip.py."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.types import FusionRequest, Run
from viz.panels.address import UNSEEN
from viz.panels.contract import SessionLike
from viz.panels.fuse_flip_view import FlipJob, FlipPair, FlipView, flip_job, flip_pair, flip_view, next_questions
from viz.panels.fuse_view import progress, status
from viz.panels.live import buttons, failed, settled, thinned, waiting_buttons
from viz.panels.players import pack

Outputs = list[Any]
STOPPED = "Stopped."


@dataclass(frozen=True, slots=True)
class FlipCallbacks:
    """Callbacks of one page; holds nothing of a visitor."""

    session: SessionLike

    def begin(self, run: Run | None, question: Any, method: Any) -> Outputs:
        """Returns status, job, Compare and Stop; the job is None where the form does not hold."""
        try:
            job = flip_job(run, question, method, self.session)
        except EngineError as error:
            return [failed(error), None, gr.skip(), gr.skip()]
        return [pack(status("busy", "Waiting for the engine; it serves one request at a time.")), job, *buttons(running=True)]

    def run(self, job: FlipJob | None, shown: Run | None) -> Iterator[Outputs]:
        """Yields status and pair; the pair stays what it was until a new one is whole."""
        if job is None or shown is None:
            yield [gr.skip(), gr.skip()]
            return
        try:
            run_a = (yield from self._measure(job.request_a, job.method)) if job.request_a else shown
            run_b = yield from self._measure(job.request_b, job.method)
            yield [pack(status("done", "Both questions are compared.")), flip_pair(job.method, run_a, run_b)]
        except EngineError as error:
            yield [failed(error), gr.skip()]

    def _measure(self, request: FusionRequest, method: str) -> Generator[Outputs, None, Run]:
        """Yields statuses and returns the run of a request."""
        with closing(self.session.stream(request, (method,))) as items:
            for item in thinned(items):
                if isinstance(item, Run):
                    return item
                yield [pack(progress(item)), gr.skip()]
        raise AssertionError("the last item of a stream is its run")

    def show(self, pair: FlipPair | None) -> Outputs:
        """Returns the values of FlipView."""
        return [pack(value) if value is None or isinstance(value, dict | str) else value for value in flip_view(pair)]

    def show_if_seen(self, pair: FlipPair | None, shown: Run | str | None) -> Outputs:
        """Returns what `show` does, nothing where the tab has not been looked at."""
        return [gr.skip()] * len(FlipView._fields) if shown == UNSEEN else self.show(pair)

    def offer(self, run: Run | None, current: Any, pair: FlipPair | None) -> Outputs:
        """Returns the questions to pick from beside a run, and the pair where it is about the same chunks."""
        questions, keep = next_questions(run, current, self.session.scenarios())
        return [gr.Dropdown(questions, value=keep), pair if pair and run and pair.is_about(run) else None]

    def stopped(self) -> Outputs:
        """Returns status, job, Compare and Stop after the visitor pressed Stop."""
        return [pack(status("idle", STOPPED)), None, *waiting_buttons()]

    def settled(self) -> Outputs:
        """Returns status, Compare and Stop when nothing of what was stopped is under way any more."""
        return settled(pack(status("idle", STOPPED)))

    def ended_early(self, job: FlipJob | None) -> Any:
        """Returns the status after a comparison that broke off; one that was stopped has its own sentence."""
        return gr.skip() if job is None else pack(status("error", "The comparison broke off before it was whole. You can compare again."))
