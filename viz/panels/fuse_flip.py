"""The second question of the Fuse tab: what changes when only the question changes. Builds and wires."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import gradio as gr

from viz import theme
from viz.panels.contract import SessionLike
from viz.panels.fuse_flip_callbacks import FlipCallbacks
from viz.panels.live import idle_buttons
from viz.panels.parts import heading, plot
from viz.panels.players import player

QUIET = {"show_progress": "hidden", "api_visibility": "private"}
PREFERRED = "qcfuse"


@dataclass(frozen=True, slots=True)
class Flip:
    """The components of the comparison of two questions."""

    question: gr.Dropdown
    method: gr.Dropdown
    compare: gr.Button
    stop: gr.Button
    status: gr.HTML
    note: gr.HTML
    figure: gr.Plot
    cards: gr.HTML
    chunks: gr.HTML

    @property
    def shown(self) -> list[gr.blocks.Block]:
        """Returns the outputs in the order of FlipView."""
        return [self.note, self.figure, self.cards, self.chunks]


class WiredFlip(NamedTuple):
    """What continues an event that has set `run`, and the pair that is compared."""

    after: Callable[[gr.events.Dependency], gr.events.Dependency]
    pair: gr.State


def build_flip(session: SessionLike) -> Flip:
    """Builds the panel. Call inside a gr.Column."""
    names = theme.method_order(session.method_names())
    with gr.Column(elem_classes="fs-panel", elem_id="flip"):
        heading("What changes when only the question changes")
        with gr.Row(elem_classes="fs-toolbar"):
            question = gr.Dropdown(
                [],
                label="Question B",
                info="Same chunks as the run above, another question: pick one, or type your own.",
                allow_custom_value=True,
                elem_id="flip-question",
                min_width=280,
                scale=4,
            )
            method = gr.Dropdown(
                [(theme.method_label(name), name) for name in names],
                value=PREFERRED if PREFERRED in names else next(iter(names), None),
                label="Method",
                info="It answers both questions.",
                elem_id="flip-method",
                filterable=False,
                min_width=220,
                scale=2,
            )
        with gr.Row(elem_classes="fs-buttons"):
            compare = gr.Button("Compare", variant="primary", elem_id="flip-run", min_width=140, scale=0)
            stop = gr.Button("Stop", variant="secondary", elem_id="flip-stop", min_width=100, scale=0, interactive=False)
        status = player("status", "flip-status", "Status of the comparison")
        note = player("note", "flip-note", "What changed")
        figure = plot("flip-figure")
        with gr.Row(elem_classes="fs-pair"):
            with gr.Column(min_width=320, scale=3):
                cards = player("cards", "flip-cards", "Both answers")
            with gr.Column(min_width=320, scale=3):
                chunks = player("table", "flip-chunks", "By chunk")
    return Flip(question, method, compare, stop, status, note, figure, cards, chunks)


def wire_flip(session: SessionLike, flip: Flip, run: gr.State, shown: gr.State, engine: dict[str, object]) -> WiredFlip:
    """Wires the panel.

    Args:
        shown: the run whose pictures are drawn, or UNSEEN.
        engine: how events that use the engine are queued.
    """
    calls, job, pair = FlipCallbacks(session), gr.State(None), gr.State(None)
    buttons = [flip.compare, flip.stop]
    begun = flip.compare.click(calls.begin, [run, flip.question, flip.method], [flip.status, job, *buttons], queue=False, **QUIET)
    measured = begun.then(
        calls.run,
        [job, run],
        [flip.status, pair],
        show_progress="minimal",
        show_progress_on=flip.status,
        api_name="stream_flip",
        api_visibility="private",
        **engine,
    )
    measured.failure(calls.ended_early, [job], [flip.status], queue=False, **QUIET)
    measured.then(calls.show, [pair], flip.shown, **QUIET).then(idle_buttons, None, buttons, queue=False, **QUIET)
    stopped = flip.stop.click(calls.stopped, None, [flip.status, job, *buttons], cancels=[measured], queue=False, **QUIET)
    stopped.then(calls.settled, None, [flip.status, *buttons], queue=False, **QUIET)

    def after(event: gr.events.Dependency) -> gr.events.Dependency:
        offered = event.then(calls.offer, [run, flip.question, pair], [flip.question, pair], queue=False, **QUIET)
        return offered.then(calls.show_if_seen, [pair, shown], flip.shown, **QUIET)

    return WiredFlip(after, pair)
