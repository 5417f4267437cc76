"""Components of the Chat tab that its own scripts draw: constant template, data as packed JSON, DOM through textContent."""

from pathlib import Path

import gradio as gr

from viz.panels.players import PLAYER_DIR, TEMPLATE

SCRIPTS = Path(__file__).resolve().parents[2] / "assets" / "chat"


def chat_player(name: str, elem_id: str, label: str) -> gr.HTML:
    """Returns a component drawn by assets/chat/<name>.js."""
    scripts = (PLAYER_DIR / "common.js", SCRIPTS / "parts.js", SCRIPTS / f"{name}.js")
    return gr.HTML(
        html_template=TEMPLATE,
        js_on_load="".join(path.read_text() for path in scripts),
        apply_default_css=False,
        elem_id=elem_id,
        label=label,
    )
