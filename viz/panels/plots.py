"""How the page draws its pictures: once each, those that are seen before the others, and none behind another tab."""

from pathlib import Path

import gradio as gr

SCRIPT = Path(__file__).resolve().parents[2] / "assets" / "plots.js"


def draw_what_is_seen(page: gr.Blocks) -> None:
    """Lets pictures be drawn when they are looked at. Call inside `page`."""
    page.load(None, None, None, js=SCRIPT.read_text(), queue=False, show_progress="hidden", api_visibility="private")
