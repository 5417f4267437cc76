"""The Layers tab: which layers tell what a question needs, with the evidence, for the model in use and for others."""

import gradio as gr

from engine.model.calibration import Calibration
from viz.figures.layer_recall import layer_recall_figure, layer_recall_info
from viz.panels.contract import SessionLike
from viz.panels.parts import first_view

QUIET = {"show_progress": "hidden", "api_visibility": "private"}
SAID = """
QCFuse reads what the question attends to at one critical layer (the second paper: at three). The papers choose it by Recall@10 %:
of the answer's tokens, the share among the tenth of the document tokens that a layer scores best. Layers that tie are told apart by
what counts in the end, the distance to full prefill when their choice is recomputed. A table for any model:
`python -m engine.model.calibrate --model ID`
"""


def build_layers(session: SessionLike, tab: gr.Tab) -> None:
    """Builds the tab. Call inside `tab`."""
    with gr.Column(elem_classes="fs-panel"):
        gr.HTML("<h2 class='fs-heading'>Critical layers</h2>", apply_default_css=False, js_on_load=None)
        gr.Markdown(SAID)
        choice = gr.Dropdown([], label="Model", info="The model in use comes first", interactive=True, elem_id="layers-model")
        figure = gr.Plot(show_label=False, container=False, elem_id="layers-recall", elem_classes="fs-plot")
        note = gr.Textbox(label="Where the table comes from", interactive=False, lines=2, elem_id="layers-note")

    def offer() -> gr.Dropdown:
        names = [table.model for table in session.calibrations()]
        return gr.Dropdown(names, value=names[0] if names else None)

    def show(name: str | None) -> tuple[object, str]:
        table = next((table for table in session.calibrations() if table.model == name), None)
        return layer_recall_figure(_info(table) if table else None), table.note if table else ""

    first_view(tab)(offer, None, [choice], queue=False, **QUIET).then(show, [choice], [figure, note], queue=False, **QUIET)
    choice.input(show, [choice], [figure, note], queue=False, **QUIET)


def _info(table: Calibration) -> object:
    scores = ((score.layer, score.recall, score.recall_se, score.kl, score.kl_se) for score in table.scores)
    return layer_recall_info(table.model, table.layers, table.origin, table.created, table.num_samples, scores, table.num_layers)
