"""What a tab offers to others that can show a scenario's recorded run."""

from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr


@dataclass(frozen=True, slots=True)
class RunViewer:
    """The components that say what to show, and what shows it.

    Args:
        show: continues an event that has set `scenario` and `method`, and returns the event that has shown the run.
        look: continues an event that has set `preview`.
        run: the run that is shown.
        show_run: continues an event that has set `run`.
        status: the line about the engine, whose data fuse_view.status makes.
        pair: two questions over the chunks of the shown run, or None.
        opened: the event after which `run` holds what the page opens with.
        measured: the event after which `run` holds what was measured, or `status` why nothing was.
        lent: the run that another tab has put into `run`, None at first; while it is the one that is shown, `back` is there.
    """

    scenario: gr.Dropdown
    method: gr.Radio
    preview: gr.Slider
    show: Callable[[gr.events.Dependency], gr.events.Dependency]
    look: Callable[[gr.events.Dependency], gr.events.Dependency]
    run: gr.State
    show_run: Callable[[gr.events.Dependency], gr.events.Dependency]
    status: gr.HTML
    pair: gr.State
    opened: gr.events.Dependency
    measured: gr.events.Dependency
    lent: gr.State
    back: gr.Button
