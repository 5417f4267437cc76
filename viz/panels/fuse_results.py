"""The right column of the Fuse tab: status, answers, pictures and numbers of one run."""

from dataclasses import dataclass

import gradio as gr

from viz import theme
from viz.panels.contract import SessionLike
from viz.panels.players import player


@dataclass(frozen=True, slots=True)
class Results:
    """The components a run fills."""

    status: gr.HTML
    cards: gr.HTML
    method: gr.Radio
    preview: gr.Slider
    preview_note: gr.HTML
    map: gr.Plot
    attention: gr.Plot
    text: gr.HTML
    ttft: gr.Plot
    timeline: gr.Plot
    counts: gr.HTML
    kv: gr.Plot
    top: gr.HTML
    download: gr.DownloadButton
    upload: gr.UploadButton

    @property
    def of_run(self) -> list[gr.blocks.Block]:
        """Returns the outputs in the order of RunView, without the banner."""
        return [self.cards, self.ttft, self.timeline, self.counts, self.kv]

    @property
    def of_method(self) -> list[gr.blocks.Block]:
        """Returns the outputs in the order of MethodView."""
        return [self.map, self.attention, self.text, self.top]


def build_results(session: SessionLike) -> Results:
    """Builds the column. Call inside a gr.Column."""
    status = player("status", "fuse-status", "Status")
    with gr.Column(elem_classes="fs-panel"):
        _heading("Answers side by side")
        cards = player("cards", "fuse-cards", "Answers")
    with gr.Column(elem_classes="fs-panel"):
        _heading("Which tokens are recomputed")
        with gr.Row(elem_classes="fs-toolbar"):
            labels = [(theme.method_label(name), name) for name in theme.method_order(session.method_names())]
            method = gr.Radio(labels, value="qcfuse", label="Picture of", elem_id="fuse-method", min_width=260, scale=2)
            preview = gr.Slider(0, 1, value=0.3, step=0.01, label="Preview another ratio", elem_id="fuse-preview", min_width=240, scale=2)
        note = player("note", "fuse-preview-note", "What is shown")
        picture_map = _plot("fuse-map")
        attention = _plot("fuse-attention")
    with gr.Column(elem_classes="fs-panel"):
        _heading("In the text")
        text = player("token_text", "fuse-text", "Chunk text")
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            ttft = _plot("fuse-ttft")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            timeline = _plot("fuse-timeline")
    with gr.Column(elem_classes="fs-panel"):
        counts = player("table", "fuse-counts", "Counts")
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            kv = _plot("fuse-kv")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            top = player("table", "fuse-top", "Top tokens")
    with gr.Row(elem_classes="fs-buttons"):
        download = gr.DownloadButton("Download this run", elem_id="fuse-download", size="md")
        upload = gr.UploadButton("Open a run file", elem_id="fuse-open", size="md", type="binary")
    return Results(
        status=status,
        cards=cards,
        method=method,
        preview=preview,
        preview_note=note,
        map=picture_map,
        attention=attention,
        text=text,
        ttft=ttft,
        timeline=timeline,
        counts=counts,
        kv=kv,
        top=top,
        download=download,
        upload=upload,
    )


def _plot(elem_id: str) -> gr.Plot:
    return gr.Plot(show_label=False, container=False, elem_id=elem_id, elem_classes="fs-plot")


def _heading(text: str) -> gr.HTML:
    """Builds a section heading; `text` must be a constant of ours."""
    return gr.HTML(f"<h2 class='fs-heading'>{text}</h2>", apply_default_css=False, js_on_load=None)
