"""What happens on the Compare tab: parse, one session call, values to show. Components are named in compare.py."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from engine.errors import BadRequest, EngineError
from engine.results import ResultSet
from engine.resultsfile import UPLOADED
from viz import theme
from viz.panels.compare_download import csv_file, json_file
from viz.panels.compare_view import (
    PAPER_METHODS,
    SCENARIOS,
    compare_banner,
    compare_view,
    download_note,
    find_set,
    first_methods,
    first_ratio,
    metric_choices,
    metric_help,
    parse_pick,
    set_label,
)
from viz.panels.contract import SessionLike
from viz.panels.fuse_view import status
from viz.panels.players import pack

Outputs = list[Any]


@dataclass(frozen=True, slots=True)
class CompareCallbacks:
    """Callbacks of one page; holds nothing of a visitor."""

    session: SessionLike

    def choose(self, name: str | None, opened: ResultSet | None) -> Outputs:
        """Returns banner, metric, methods, ratio, CSV, JSON, download note and status of a set."""
        try:
            found = find_set(self._sets(opened), name)
        except EngineError as error:
            return [*[gr.skip()] * 7, _failed(error)]
        names = theme.method_order(found.methods()) if found else ()
        metrics = metric_choices(found)
        return [
            pack(compare_banner(found, self.session.results_left_out())),
            gr.Dropdown(metrics, value=metrics[0][1], info=metric_help(metrics[0][1])),
            gr.CheckboxGroup([(theme.method_label(n), n) for n in names], value=first_methods(found)),
            gr.Dropdown([(f"{ratio:g}", ratio) for ratio in found.ratios()] if found else [], value=first_ratio(found)),
            csv_file(found),
            json_file(found),
            pack(download_note(found)),
            pack(status("idle", "")),
        ]

    def choose_opened(self, name: str | None, opened: ResultSet | None) -> Outputs:
        """Returns what `choose` returns but for the status, which tells about the file."""
        return self.choose(name, opened)[:-1]

    def show(self, name: str | None, opened: ResultSet | None, metric: str, methods: list[str], ratio: float, log_time: bool) -> Outputs:
        """Returns the values of CompareView and the metric's meaning."""
        try:
            view = compare_view(find_set(self._sets(opened), name), metric, methods, ratio, log_time)
        except EngineError as error:
            return [*[gr.skip()] * 5, gr.skip(), _failed(error)]
        return [*(pack(v) if isinstance(v, dict | str) else v for v in view), gr.Dropdown(info=metric_help(metric)), gr.skip()]

    def open_file(self, data: bytes | None) -> Outputs:
        """Returns status, opened set and selector after a file was chosen; what was shown stays where it does not hold."""
        try:
            opened = self.session.open_results(data or b"")
        except EngineError as error:
            return [_failed(error), gr.skip(), gr.skip()]
        choices = [(set_label(one), one.name) for one in self._sets(opened)]
        return [pack(status("done", "The results of the file are shown.")), opened, gr.Dropdown(choices, value=UPLOADED)]

    def pick(self, name: str | None, opened: ResultSet | None, event: gr.EventData) -> Outputs:
        """Returns scenario, method, tab and ratio of the recorded run that a row of the table asks for."""
        try:
            method, ratio = parse_pick(event._data)
            scenario = self._recorded_scenario(find_set(self._sets(opened), name), method)
        except EngineError as error:
            raise gr.Error(str(error), title="Nothing to show", print_exception=False) from error
        return [scenario, gr.Radio([(theme.method_label(method), method)], value=method), gr.Tabs(selected="fuse"), ratio]

    def _recorded_scenario(self, found: ResultSet | None, method: str) -> str:
        """Returns the first scenario with a recorded run of the method. Raises BadRequest, BadRunFile."""
        if found is None or found.data != SCENARIOS:
            raise BadRequest("This result set is not of the bundled scenarios, so no run of it is recorded; choose one that is.")
        for scenario in self.session.scenarios():
            run = self.session.recorded(scenario.name)
            if run is not None and run.method(method) is not None:
                return scenario.name
        raise BadRequest(f"No recorded run holds {theme.method_label(method)}; run it in the Fuse tab.")

    def all_methods(self, name: str | None, opened: ResultSet | None) -> Any:
        """Returns the selector with every method of the set ticked."""
        return gr.CheckboxGroup(value=list(self._methods(name, opened)))

    def paper_methods(self, name: str | None, opened: ResultSet | None) -> Any:
        """Returns the selector with the methods of the paper's figure ticked, as far as the set has them."""
        return gr.CheckboxGroup(value=[method for method in self._methods(name, opened) if method in PAPER_METHODS])

    def _methods(self, name: str | None, opened: ResultSet | None) -> tuple[str, ...]:
        found = next((one for one in self._sets(opened) if one.name == name), None)
        return theme.method_order(found.methods()) if found else ()

    def _sets(self, opened: ResultSet | None) -> tuple[ResultSet, ...]:
        return (*self.session.results(), *((opened,) if opened else ()))


def _failed(error: EngineError) -> dict[str, str]:
    gr.Warning(str(error).replace("<", "‹").replace(">", "›"), title="Not shown")
    return pack(status("error", str(error)))
