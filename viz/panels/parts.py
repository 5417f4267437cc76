"""Small parts that panels share."""

import gradio as gr


def plot(elem_id: str) -> gr.Plot:
    """Builds an empty picture."""
    return gr.Plot(show_label=False, container=False, elem_id=elem_id, elem_classes="fs-plot")


def heading(text: str) -> gr.HTML:
    """Builds a section heading; `text` must be a constant of ours."""
    return gr.HTML(f"<h2 class='fs-heading'>{text}</h2>", apply_default_css=False, js_on_load=None)
