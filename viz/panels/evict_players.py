"""Components of the Evict tab that its own scripts draw: constant template, data as packed JSON, DOM through textContent."""

from pathlib import Path
from typing import Any

import gradio as gr

from viz.panels.players import PLAYER_DIR, TEMPLATE, pack

SCRIPTS = Path(__file__).resolve().parents[2] / "assets" / "evict"


def evict_player(name: str, elem_id: str, label: str, value: Any = None) -> gr.HTML:
    """Returns a component drawn by assets/evict/<name>.js."""
    script = (PLAYER_DIR / "common.js").read_text() + (SCRIPTS / f"{name}.js").read_text()
    return gr.HTML(
        value if value is None else pack(value),
        html_template=TEMPLATE,
        js_on_load=script,
        apply_default_css=False,
        elem_id=elem_id,
        label=label,
    )
