"""The live run of the Evict tab: scripted sessions through the loaded model, LRU and a rival in turn. Builds; callbacks are beside it."""

from dataclasses import dataclass

import gradio as gr
import plotly.graph_objects as go

from viz import theme
from viz.figures.evict_scores import FLOOR
from viz.panels.contract import LiveRunsLike
from viz.panels.evict_live_view import live_view
from viz.panels.players import player

FIRST_RIVAL, FIRST_REQUESTS, FIRST_PERCENT, MOST_SEED = "saecache", 40, 25, 99
INTRO = """
<p class='fs-note fs-muted'>The same scripted chats, agents, templates and questions over passages go through the model that is loaded,
behind two caches of the same size: every request under LRU and under its rival, the first one changing from request to request.
Times are measured from the look-up of a prompt to its first token; the policies see the script's clock.</p>
"""


@dataclass(frozen=True, slots=True)
class LivePart:
    """Its components; `form` in the order of `parse_live`, `shown` in that of `LiveView`."""

    form: list[gr.components.Component]
    start: gr.Button
    stop: gr.Button
    status: gr.HTML
    shown: list[gr.Plot | gr.HTML]


def build_live(runs: LiveRunsLike) -> LivePart:
    """Builds the part. Call inside its tab."""
    gr.HTML(INTRO, apply_default_css=False, js_on_load=None)
    rivals = [name for name in runs.policy_names() if name != FLOOR]
    with gr.Column(elem_classes="fs-panel"):
        with gr.Row(elem_classes="fs-toolbar"):
            rival = gr.Dropdown(
                [(theme.policy_style(name).label, name) for name in theme.policy_order(rivals)],
                value=FIRST_RIVAL,
                label="LRU against",
                info="A policy that need not know the future.",
                elem_id="evict-live-rival",
                filterable=False,
                min_width=220,
                scale=2,
            )
            requests = gr.Slider(
                10,
                120,
                value=FIRST_REQUESTS,
                step=10,
                label="Requests",
                info="Each is served under both.",
                buttons=[],
                elem_id="evict-live-requests",
                min_width=200,
                scale=2,
            )
            percent = gr.Slider(
                5,
                60,
                value=FIRST_PERCENT,
                step=5,
                label="Capacity, % of the distinct blocks",
                info="Of each of the two caches.",
                buttons=[],
                elem_id="evict-live-capacity",
                min_width=220,
                scale=2,
            )
            seed = gr.Number(
                0,
                label="Seed",
                info="Draws the sessions.",
                precision=0,
                minimum=0,
                maximum=MOST_SEED,
                elem_id="evict-live-seed",
                min_width=120,
            )
            with gr.Column(min_width=160, scale=1, elem_classes="fs-evict-go"):
                start = gr.Button("Run live", variant="primary", elem_id="evict-live-start")
                stop = gr.Button("Stop", elem_id="evict-live-stop")
        status = player("status", "evict-live-status", "Status of the live run")
    empty = live_view((), ())
    with gr.Column(elem_classes="fs-panel"):
        times, words = _plot("evict-live-times", empty.times), player("note", "evict-live-words", "The live run in words")
        table = player("table", "evict-live-table", "Policies side by side", empty.table)
    with gr.Column(elem_classes="fs-panel"):
        held = _plot("evict-live-held", empty.held)
    return LivePart([rival, requests, percent, seed], start, stop, status, [times, words, table, held])


def _plot(elem_id: str, figure: go.Figure) -> gr.Plot:
    """Builds a picture that says why it is empty."""
    return gr.Plot(figure, show_label=False, container=False, elem_id=elem_id, elem_classes="fs-plot")
