"""Small parts that panels share."""

from collections.abc import Callable

import gradio as gr


def plot(elem_id: str) -> gr.Plot:
    """Builds an empty picture."""
    return gr.Plot(show_label=False, container=False, elem_id=elem_id, elem_classes="fs-plot")


def heading(text: str) -> gr.HTML:
    """Builds a section heading; `text` must be a constant of ours."""
    return gr.HTML(f"<h2 class='fs-heading'>{text}</h2>", apply_default_css=False, js_on_load=None)


def first_view(tab: gr.Tab) -> Callable[..., gr.events.Dependency]:
    """Returns an event that comes once a visitor, when the tab is first opened. Call inside the page's Blocks.

    What a tab shows is made then: a page that makes all of it while it loads keeps its visitors waiting.
    """
    seen = gr.State(False)
    # Queued: Gradio 6.31 tells of a changed state through its queue alone.
    tab.select(lambda: True, None, [seen], show_progress="hidden", api_visibility="private")
    return seen.change
