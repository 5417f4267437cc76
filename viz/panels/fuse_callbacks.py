"""What happens on the Fuse tab: parse, one session call, values to show. Components are named in fuse.py."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.types import Run
from viz import theme
from viz.panels.address import UNSEEN
from viz.panels.contract import RunFiles, SessionLike
from viz.panels.fuse_place import server_of
from viz.panels.fuse_view import choice_view, finished, first_method, method_view, preview_label, preview_note, progress, run_view, status
from viz.panels.live import buttons, failed, settled, thinned, waiting_buttons
from viz.panels.players import pack
from viz.panels.request_form import FusionForm, Job, chunk_items, parse_form, parse_model_name
from viz.panels.run_download import write_run

Outputs = list[Any]
STOPPED = "Stopped. The run before it is still shown."
NUM_SHOWN = 18


@dataclass(frozen=True, slots=True)
class FuseCallbacks:
    """Callbacks of one page; holds nothing of a visitor."""

    session: SessionLike
    files: RunFiles

    def begin(self, scenario: str, *values: Any) -> Outputs:
        """Returns status, job, Run and Stop; the job is None where the form does not hold."""
        try:
            job = parse_form(FusionForm(*values), self.session.scenario(scenario or ""), self.session.method_names())
        except EngineError as error:
            return [failed(error), None, gr.skip(), gr.skip()]
        return [pack(status("busy", "Waiting for the engine; it serves one request at a time.")), job, *buttons(running=True)]

    def run(self, job: Job | None) -> Iterator[Outputs]:
        """Yields status and run; the run stays what it was until a new one is whole."""
        if job is None:
            yield [gr.skip(), gr.skip()]
            return
        try:
            engine = server_of(self.session) if job.on_server else self.session
            with closing(engine.stream(job.request, job.methods)) as items:
                for item in thinned(items):
                    done = isinstance(item, Run)
                    yield [pack(finished(item) if done else progress(item)), item if done else gr.skip()]
        except EngineError as error:
            yield [failed(error), gr.skip()]

    def open(self, run: Run | None, shown: Run | str | None, wanted: str | None) -> Outputs:
        """Returns what `show` does for the run that the page opens with, nothing where the link leads to another tab."""
        return [gr.skip()] * NUM_SHOWN if shown == UNSEEN else self.show(run, shown, wanted)

    def show(self, run: Run | None, shown: Run | str | None, wanted: str | None) -> Outputs:
        """Returns banner, shown run, picture selector, preview, note, download, model line, then RunView, MethodView and ChoiceView."""
        if run is shown and run is not None:
            return [gr.skip()] * NUM_SHOWN
        name, (banner, *of_run) = first_method(run, wanted), run_view(run)
        ratio = run.ratio if run else 0.3
        choices = [(theme.method_label(m.method), m.method) for m in run.methods] if run else []
        return [
            pack(banner),
            run,
            gr.Radio(choices, value=name if run else None),
            gr.Slider(value=ratio, label=preview_label(run)),
            pack(preview_note(run, name, ratio)),
            write_run(self.files, run),
            self.session.model_line(),
            *_packed([*of_run, *method_view(run, name), *choice_view(run)]),
        ]

    def look(self, run: Run | None, name: str | None, ratio: float) -> Outputs:
        """Returns the preview note and MethodView for another method; the engine is not called."""
        name = first_method(run, name)
        return [pack(preview_note(run, name, ratio)), *_packed(method_view(run, name, ratio))]

    def preview(self, run: Run | None, name: str | None, ratio: float) -> Outputs:
        """Returns what `look` returns and ChoiceView for another ratio; the engine is not called."""
        return [*self.look(run, name, ratio), *choice_view(run, ratio)]

    def choose_scenario(self, name: str) -> Outputs:
        """Returns scenario, question and chunk list of a scenario, its recorded run (or none) and the status."""
        try:
            known = self.session.scenario(name or "")
        except EngineError as error:
            return [gr.skip(), gr.skip(), gr.skip(), gr.skip(), failed(error)]
        run, line = self._recorded(known.name)
        questions = [question.question for question in known.questions]
        question = gr.Dropdown(questions, value=run.question if run else next(iter(questions), None))
        return [gr.Dropdown(info=known.description), question, pack(chunk_items(known)), run, line]

    def _recorded(self, name: str) -> tuple[Run | None, dict[str, str]]:
        try:
            run = self.session.recorded(name)
        except EngineError as error:
            return None, failed(error)
        message = "Recorded run shown. Press Run to measure it here." if run else "Nothing recorded for this scenario. Press Run."
        return run, pack(status("idle", message))

    def stopped(self) -> Outputs:
        """Returns status, job, Run and Stop after the visitor pressed Stop."""
        return [pack(status("idle", STOPPED)), None, *waiting_buttons()]

    def settled(self) -> Outputs:
        """Returns status, Run and Stop when nothing of what was stopped is under way any more."""
        return settled(pack(status("idle", STOPPED)))

    def ended_early(self, job: Job | None) -> Any:
        """Returns the status after a run that broke off; one that was stopped has no job any more and has its own sentence."""
        message = "The run broke off before it was whole; the one before it is still shown. You can run again."
        return gr.skip() if job is None else pack(status("error", message))

    def load_model(self, name: str | None) -> Iterator[Outputs]:
        """Yields status and model line while a model loads; the current one stays where that fails."""
        try:
            wanted = parse_model_name(name)
            yield [pack(status("busy", f"Loading {wanted}; this can take a minute.")), gr.skip()]
            yield [pack(status("done", self.session.select_model(wanted))), self.session.model_line()]
        except EngineError as error:
            yield [failed(error), self.session.model_line()]

    def open_file(self, data: bytes | None) -> Outputs:
        """Returns status and run of a chosen file; the run stays where the file does not hold."""
        try:
            run = self.files.parse_run(data or b"")
        except EngineError as error:
            return [failed(error), gr.skip()]
        return [pack(status("done", "The run of the file is shown.")), run]

    def refresh_model_line(self) -> Outputs:
        """Returns the model line, and a timer that stops once nothing is loading."""
        line = self.session.model_line()
        return [line, gr.Timer(active=line.lower().startswith("loading"))]


def _packed(values: Any) -> Outputs:
    return [pack(value) if isinstance(value, dict) else value for value in values]
