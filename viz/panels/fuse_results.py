"""The right column of the Fuse tab: status, answers, pictures and numbers of one run."""

from dataclasses import dataclass

import gradio as gr

from viz import theme
from viz.panels.contract import SessionLike
from viz.panels.fuse_flip import Flip, build_flip
from viz.panels.fuse_offer import default_methods
from viz.panels.fuse_view import preview_label
from viz.panels.parts import heading, plot
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
    agreement: gr.Plot
    overlap: gr.Plot
    ttft: gr.Plot
    timeline: gr.Plot
    counts: gr.HTML
    kv: gr.Plot
    top: gr.HTML
    download: gr.DownloadButton
    upload: gr.UploadButton
    flip: Flip

    @property
    def of_run(self) -> list[gr.blocks.Block]:
        """Returns the outputs in the order of RunView, without the banner."""
        return [self.cards, self.ttft, self.timeline, self.counts, self.kv]

    @property
    def of_method(self) -> list[gr.blocks.Block]:
        """Returns the outputs in the order of MethodView."""
        return [self.map, self.attention, self.text, self.top]

    @property
    def of_choices(self) -> list[gr.blocks.Block]:
        """Returns the outputs in the order of ChoiceView."""
        return [self.agreement, self.overlap]


def build_results(session: SessionLike) -> Results:
    """Builds the column. Call inside a gr.Column."""
    status = player("status", "fuse-status", "Status")
    with gr.Column(elem_classes="fs-panel"):
        heading("Answers side by side")
        cards = player("cards", "fuse-cards", "Answers")
    with gr.Column(elem_classes="fs-panel"):
        heading("Which tokens are recomputed")
        with gr.Row(elem_classes="fs-toolbar"):
            labels = [(theme.method_label(name), name) for name in default_methods(session.method_names())]
            first = labels[-1][1] if labels else None
            method = gr.Radio(labels, value=first, label="Picture of", elem_id="fuse-method", min_width=260, scale=2)
            preview = gr.Slider(0, 1, value=0.3, step=0.01, label=preview_label(None), elem_id="fuse-preview", min_width=240, scale=1)
        note = player("note", "fuse-preview-note", "What is shown")
        picture_map = plot("fuse-map")
        attention = plot("fuse-attention")
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, scale=3, elem_classes="fs-panel"):
            heading("In the text")
            text = player("token_text", "fuse-text", "Chunk text")
        with gr.Column(min_width=320, scale=2, elem_classes="fs-panel"):
            top = player("table", "fuse-top", "Top tokens")
    with gr.Column(elem_classes="fs-panel"):
        heading("The choices of all methods")
        agreement = plot("fuse-agreement")
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            overlap = plot("fuse-overlap")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            kv = plot("fuse-kv")
    flip = build_flip(session)
    with gr.Row(elem_classes="fs-pair"):
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            ttft = plot("fuse-ttft")
        with gr.Column(min_width=320, elem_classes="fs-panel"):
            timeline = plot("fuse-timeline")
    with gr.Column(elem_classes="fs-panel"):
        counts = player("table", "fuse-counts", "Counts")
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
        agreement=agreement,
        overlap=overlap,
        ttft=ttft,
        timeline=timeline,
        counts=counts,
        kv=kv,
        top=top,
        download=download,
        upload=upload,
        flip=flip,
    )
