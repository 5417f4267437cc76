"""The page: header, tabs and look. A new tab is one file and one line here."""

from pathlib import Path
from typing import Any

import gradio as gr

from viz.panels.api import make_run
from viz.panels.claims import build_claims
from viz.panels.compare import build_compare, show_in
from viz.panels.contract import RunFiles, SessionLike
from viz.panels.fuse import ENGINE, build_fuse
from viz.panels.layers import build_layers

STYLE = Path(__file__).resolve().parents[2] / "assets" / "fusescope.css"
HEADER = """
<header class="fs-header">
  <h1>Fusescope</h1>
  <p>Watch a real LLM reuse the KV caches of retrieved documents: which tokens are recomputed, what that saves, and what it costs
  in quality. <strong>Pick a question, press Run.</strong></p>
</header>
"""


def build(session: SessionLike, files: RunFiles | None = None) -> gr.Blocks:
    """Returns the page for a session; `files` defaults to engine.runfile."""
    if files is None:
        from engine import runfile

        files = runfile
    with gr.Blocks(title="Fusescope", fill_width=True, analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        gr.HTML(HEADER, apply_default_css=False, js_on_load=None)
        with gr.Tabs(selected="fuse") as tabs:
            with gr.Tab("Fuse", id="fuse"):
                viewer = build_fuse(session, files, page)
            with gr.Tab("Compare", id="compare"):
                compare = build_compare(session, page)
            with gr.Tab("Claims", id="claims"):
                claims = build_claims(session, page)
            with gr.Tab("Layers", id="layers"):
                build_layers(session, page)
        show_in(viewer, compare, tabs)
        compare.file_opened.then(claims.show, [compare.opened], [claims.view], show_progress="hidden", api_visibility="private")
        gr.api(make_run(session), api_name="run", **ENGINE)
    page.queue(default_concurrency_limit=4, max_size=32)
    return page


def launch_options() -> dict[str, Any]:
    """Returns how the page is served: our look, no history shared between visitors, nothing from other hosts."""
    # Gradio 6.31 ships this font's weight 600, which its own theme asks for, with almost no letters in it; 700 is whole.
    letters = (gr.themes.LocalFont("Source Sans Pro", weights=(400, 700)), "ui-sans-serif", "system-ui", "sans-serif")
    look = gr.themes.Default(primary_hue="blue", secondary_hue="amber", neutral_hue="slate", text_size="lg", font=letters).set(
        block_info_text_color="#4B5563",
        block_info_text_color_dark="#B6BECB",
        block_info_text_size="14px",
        block_label_text_size="15px",
        block_title_text_color="#1F2937",
        block_title_text_color_dark="#F3F4F6",
        block_title_text_weight="600",
        block_border_width="0px",
        block_shadow="none",
        block_padding="0px",
        button_primary_background_fill="#0072B2",
        button_primary_background_fill_hover="#005F94",
        button_primary_background_fill_dark="#0072B2",
        button_primary_background_fill_hover_dark="#2489C4",
        button_primary_text_color="#FFFFFF",
        button_primary_text_color_dark="#FFFFFF",
    )
    return {
        "theme": look,
        "css_paths": [STYLE],
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "share": False,
        "show_error": True,
        "enable_monitoring": False,
        "max_file_size": "64mb",
        "state_session_capacity": 200,
    }
