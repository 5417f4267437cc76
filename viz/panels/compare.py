"""The Compare tab: benchmark results of all methods, time against quality. Builds and wires; the rest is beside it."""

from dataclasses import dataclass

import gradio as gr

from viz.panels.compare_callbacks import CompareCallbacks
from viz.panels.compare_view import SCENARIOS, metric_choices, metric_help, published, published_setting, set_label
from viz.panels.contract import SessionLike
from viz.panels.parts import first_view
from viz.panels.players import player
from viz.panels.run_viewer import RunViewer

QUIET = {"show_progress": "hidden", "api_visibility": "private"}

FIT = """() => setTimeout(() => document.querySelectorAll("#compare-pareto .js-plotly-plot").forEach((plot) => {
  if (window.Plotly) window.Plotly.Plots.resize(plot);
}), 60)"""


@dataclass(frozen=True, slots=True)
class CompareTab:
    """The components that others react to, and the event after a file was opened."""

    calls: CompareCallbacks
    chosen: gr.Dropdown
    opened: gr.State
    table: gr.HTML
    file_opened: gr.events.Dependency


@dataclass(frozen=True, slots=True)
class _Controls:
    chosen: gr.Dropdown
    upload: gr.UploadButton
    metric: gr.Dropdown
    ratio: gr.Dropdown
    methods: gr.CheckboxGroup
    all_methods: gr.Button
    paper_methods: gr.Button
    log_time: gr.Checkbox
    published: gr.Checkbox


@dataclass(frozen=True, slots=True)
class _Results:
    pareto: gr.Plot
    published_box: gr.Column
    published: gr.Plot
    table: gr.HTML
    break_even: gr.Plot
    break_even_note: gr.HTML
    equal: gr.HTML
    csv: gr.DownloadButton
    json: gr.DownloadButton
    note: gr.HTML


def build_compare(session: SessionLike, tab: gr.Tab) -> CompareTab:
    """Builds the tab. Call inside `tab`."""
    banner = player("banner", "compare-banner", "Result set")
    with gr.Column(elem_classes="fs-panel", elem_id="compare-controls"):
        controls = _build_controls(session)
        status = player("status", "compare-status", "Status")
    results = _build_results()
    return _wire(CompareCallbacks(session), controls, results, banner, status, tab)


def show_in(viewer: RunViewer, tab: CompareTab, tabs: gr.Tabs) -> None:
    """Lets a row of the table open its recorded run in the tab of `viewer`."""
    ratio = gr.State(None)
    picked = tab.table.pick(tab.calls.pick, [tab.chosen, tab.opened], [viewer.scenario, viewer.method, tabs, ratio], **QUIET)
    # Where no run was found, what the other tab shows stays.
    found = picked.success(lambda: None, None, None, queue=False, **QUIET)
    viewer.look(viewer.show(found).then(lambda value: value, [ratio], [viewer.preview], queue=False, **QUIET))


def _build_controls(session: SessionLike) -> _Controls:
    sets = session.results()
    first = next((one for one in sets if one.data != SCENARIOS), sets[0] if sets else None)
    with gr.Row(elem_classes="fs-toolbar"):
        chosen = gr.Dropdown(
            [(set_label(one), one.name) for one in sets],
            value=first.name if first else None,
            label="Result set",
            info="Data, model, machine, number of questions, date.",
            elem_id="compare-set",
            filterable=False,
            min_width=300,
            scale=3,
        )
        metric = gr.Dropdown(
            metric_choices(first),
            value="kl_to_full",
            label="Quality metric",
            info=metric_help("kl_to_full"),
            elem_id="compare-metric",
            min_width=240,
            scale=2,
        )
        ratio = gr.Dropdown(
            [], value=None, label="Ratio", info="For the lower two panels.", elem_id="compare-ratio", min_width=140, scale=1
        )
    with gr.Accordion("Methods", open=True, elem_id="compare-methods-box"):
        methods = gr.CheckboxGroup([], label="Shown", show_label=False, elem_id="compare-methods")
        with gr.Row(elem_classes="fs-buttons"):
            every = gr.Button("All methods", size="sm", elem_id="compare-all", min_width=150, scale=0)
            papers = gr.Button("The paper's nine", size="sm", elem_id="compare-papers", min_width=150, scale=0)
    with gr.Row(elem_classes="fs-toolbar"):
        log_time = gr.Checkbox(False, label="Logarithmic time axis", elem_id="compare-log", min_width=200)
        beside = gr.Checkbox(False, label="Show the paper's own figure beside it", elem_id="compare-published", min_width=260)
        upload = gr.UploadButton(
            "Open a results file", elem_id="compare-open", size="md", type="binary", file_types=[".json"], min_width=200, scale=0
        )
    return _Controls(chosen, upload, metric, ratio, methods, every, papers, log_time, beside)


def _build_results() -> _Results:
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, scale=3, elem_classes="fs-panel"):
            pareto = _plot("compare-pareto")
            _text(
                "Vertical bars: 95 % interval. Horizontal bars: 95 % interval of the paired speed-up over full prefill, about the median. "
                "Drag to zoom, double-click to go back."
            )
        with gr.Column(min_width=320, scale=2, elem_classes="fs-panel", visible=False) as box:
            beside = _plot("compare-published-plot")
            _text(f"Published, not measured here: {published_setting()}.")
    with gr.Column(elem_classes="fs-panel"):
        table = player("results_table", "compare-table", "Every method and ratio")
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            costs = _plot("compare-break-even")
            costs_note = player("note", "compare-break-even-note", "When caches pay")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            equal = player("table", "compare-equal", "Time at equal quality")
    with gr.Row(elem_classes="fs-buttons"):
        csv = gr.DownloadButton("Download CSV", elem_id="compare-csv", size="md", scale=0, min_width=200)
        json = gr.DownloadButton("Download JSON", elem_id="compare-json", size="md", scale=0, min_width=200)
    note = player("note", "compare-note", "How this was measured")
    return _Results(pareto, box, beside, table, costs, costs_note, equal, csv, json, note)


def _wire(calls: CompareCallbacks, controls: _Controls, results: _Results, banner: gr.HTML, status: gr.HTML, tab: gr.Tab) -> CompareTab:
    opened = gr.State(None)
    of_set = [controls.chosen, opened]
    view_in = [*of_set, controls.metric, controls.methods, controls.ratio, controls.log_time]
    view_out = [results.pareto, results.table, results.break_even, results.break_even_note, results.equal, controls.metric, status]
    choose_out = [banner, controls.metric, controls.methods, controls.ratio, results.csv, results.json, results.note, status]

    file_opened = controls.upload.upload(calls.open_file, [controls.upload], [status, opened, controls.chosen], **QUIET)
    for event in (first_view(tab), controls.chosen.input):
        event(calls.choose, of_set, choose_out, **QUIET).then(calls.show, view_in, view_out, **QUIET)
    file_opened.then(calls.choose_opened, of_set, choose_out[:-1], **QUIET).then(calls.show, view_in, view_out, **QUIET)
    for changed in (controls.metric, controls.methods, controls.ratio, controls.log_time):
        changed.input(calls.show, view_in, view_out, trigger_mode="always_last", **QUIET)
    for button, ticked in ((controls.all_methods, calls.all_methods), (controls.paper_methods, calls.paper_methods)):
        button.click(ticked, of_set, [controls.methods], **QUIET).then(calls.show, view_in, view_out, **QUIET)
    beside = [results.published_box, results.published]
    # A picture keeps the width it was drawn with, so it is told when a column comes or goes beside it.
    controls.published.input(_show_published, [controls.published], beside, queue=False, **QUIET).then(None, js=FIT)
    return CompareTab(calls, controls.chosen, opened, results.table, file_opened)


def _show_published(wanted: bool) -> list[object]:
    """Returns the column of the paper's figure, and the figure."""
    return [gr.Column(visible=bool(wanted)), published() if wanted else None]


def _plot(elem_id: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, elem_id=elem_id, elem_classes="fs-plot")


def _text(text: str) -> gr.HTML:
    """Builds a line below a picture; `text` must be a constant of ours."""
    return gr.HTML(f"<p class='fs-note fs-muted'>{text}</p>", apply_default_css=False, js_on_load=None)
