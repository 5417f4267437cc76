"""The left column of the Fuse tab: what to ask, of which chunks, by which methods."""

from dataclasses import dataclass

import gradio as gr

from engine.method_list import method_notes
from engine.types import CHUNK_CONTEXTS
from viz.panels.contract import SessionLike
from viz.panels.fuse_offer import method_groups
from viz.panels.fuse_place import Place, build_place
from viz.panels.model_offer import model_offer
from viz.panels.players import player
from viz.panels.request_form import chunk_items

CONTEXTS = {
    "system": "Behind the system prompt: each chunk is cached as if it came first, then what it saw is dropped.",
    "alone": "Alone, as in the papers: each chunk is cached at position 0 and has seen nothing.",
    "primed": "Primed: behind the system prompt and a neutral text that stands in for earlier chunks; the first chunk without it.",
    "primed-mean": "Primed, mean: as primed, behind each of several neutral texts in turn, and the mean of the caches is stored.",
    "primed-one": "Primed, one version: every chunk behind the neutral text, the first one too, so that each is stored once.",
}


@dataclass(frozen=True, slots=True)
class Controls:
    """The components a visitor sets."""

    scenario: gr.Dropdown
    question: gr.Dropdown
    place: Place
    chunks: gr.HTML
    ratio: gr.Slider
    methods: gr.HTML
    chunk_context: gr.Radio
    max_new_tokens: gr.Slider
    temperature: gr.Slider
    seed: gr.Number
    repeats: gr.Slider
    model: gr.Dropdown
    load: gr.Button
    model_line: gr.Textbox
    run: gr.Button
    stop: gr.Button

    @property
    def form(self) -> list[gr.blocks.Block]:
        """Returns the inputs of a request in the order of FusionForm's fields."""
        return [
            self.question,
            self.chunks,
            self.ratio,
            self.methods,
            self.chunk_context,
            self.max_new_tokens,
            self.temperature,
            self.seed,
            self.repeats,
            self.place.where,
            self.place.prefix_cache,
        ]


def build_controls(session: SessionLike) -> Controls:
    """Builds the column. Call inside a gr.Column."""
    scenarios = session.scenarios()
    first = scenarios[0] if scenarios else None
    questions = [question.question for question in first.questions] if first else []
    rules = {note.name: note.rule for note in method_notes()}
    scenario = gr.Dropdown(
        [(s.title, s.name) for s in scenarios],
        value=first.name if first else None,
        label="Scenario",
        info=first.description if first else None,
        elem_id="fuse-scenario",
        filterable=False,
    )
    question = gr.Dropdown(
        questions,
        value=questions[0] if questions else None,
        label="Question",
        info="Pick one, or type your own.",
        allow_custom_value=True,
        elem_id="fuse-question",
    )
    place = build_place(session)
    with gr.Row(elem_classes="fs-buttons"):
        run = gr.Button("Run", variant="primary", elem_id="fuse-run", min_width=100, scale=2)
        stop = gr.Button("Stop", variant="secondary", elem_id="fuse-stop", min_width=80, scale=1, interactive=False)
    ratio = gr.Slider(
        0, 1, value=0.3, step=0.05, label="Recompute ratio", info="Share of the document tokens to recompute.", elem_id="fuse-ratio"
    )
    with gr.Accordion("Methods", open=True, elem_id="fuse-methods-box"):
        methods = player("methods", "fuse-methods", "Methods", method_groups(session.method_names(), rules))
    with gr.Accordion("Retrieved chunks", open=True, elem_id="fuse-chunks-box"):
        chunks = player("chunk_list", "fuse-chunks", "Retrieved chunks", chunk_items(first) if first else {"items": []})
    with gr.Accordion("How chunk caches are made", open=False, elem_id="fuse-context-box"):
        context = gr.Radio(
            [(CONTEXTS.get(name, name), name) for name in CHUNK_CONTEXTS],
            value="system",
            label="What a chunk has seen when it is cached",
            info="Methods with “+ primed” bring their own.",
            elem_id="fuse-context",
            elem_classes="fs-sentences",
        )
    with gr.Accordion("Advanced", open=False, elem_id="fuse-advanced"):
        advanced = _build_advanced(session)
    return Controls(
        scenario=scenario,
        question=question,
        place=place,
        chunks=chunks,
        ratio=ratio,
        methods=methods,
        chunk_context=context,
        run=run,
        stop=stop,
        **advanced,
    )


def _build_advanced(session: SessionLike) -> dict[str, gr.blocks.Block]:
    with gr.Row(elem_classes="fs-buttons"):
        offer = model_offer(session, "shared by all visitors")
        model = gr.Dropdown(label="Model", elem_id="fuse-model", min_width=180, scale=3, **offer)
        load = gr.Button("Load", elem_id="fuse-load", min_width=70, scale=1, interactive=offer.get("interactive", True))
    return {
        "model": model,
        "load": load,
        "model_line": gr.Textbox(
            session.model_line(), label="Model in use", interactive=False, lines=1, max_lines=3, elem_id="fuse-model-line"
        ),
        "max_new_tokens": gr.Slider(1, 128, value=32, step=1, label="Answer length (tokens)", elem_id="fuse-length"),
        "temperature": gr.Slider(0, 2, value=0, step=0.1, label="Temperature", info="0 is greedy.", elem_id="fuse-temperature"),
        "seed": gr.Number(0, label="Seed", precision=0, elem_id="fuse-seed"),
        "repeats": gr.Slider(1, 20, value=3, step=1, label="Repeats", info="Times each method is measured.", elem_id="fuse-repeats"),
    }
