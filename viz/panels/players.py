"""Gradio components that draw with our own small scripts.

The HTML template is constant: Gradio runs `${...}` and inserts tags found in templates, so no text of a user, a
document or a model ever gets into one. Data travels as base64 of JSON and becomes DOM through textContent.
"""

import base64
import json
from pathlib import Path
from typing import Any

import gradio as gr

PLAYER_DIR = Path(__file__).resolve().parents[2] / "assets" / "player"
TEMPLATE = '<div class="fs-root"></div>'


def pack(data: Any) -> dict[str, str]:
    """Returns JSON-able data as the value of a player."""
    return {"b64": base64.b64encode(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()).decode()}


def unpack(value: dict[str, str]) -> Any:
    """Returns the data of a packed value."""
    return json.loads(base64.b64decode(value["b64"]))


def player(name: str, elem_id: str, label: str, value: Any = None) -> gr.HTML:
    """Returns a component drawn by assets/player/<name>.js."""
    script = (PLAYER_DIR / "common.js").read_text() + (PLAYER_DIR / f"{name}.js").read_text()
    return gr.HTML(
        value if value is None else pack(value),
        html_template=TEMPLATE,
        js_on_load=script,
        apply_default_css=False,
        elem_id=elem_id,
        label=label,
    )
