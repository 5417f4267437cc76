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
    """

    scenario: gr.Dropdown
    method: gr.Radio
    preview: gr.Slider
    show: Callable[[gr.events.Dependency], gr.events.Dependency]
    look: Callable[[gr.events.Dependency], gr.events.Dependency]
