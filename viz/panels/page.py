"""The page: header, tabs and look. A new tab is one file and one line here."""

from pathlib import Path
from typing import Any

import gradio as gr

from engine.serving.clients import same_text
from viz.panels.address import follow, tab_of_link
from viz.panels.api import endpoints
from viz.panels.chat import build_chat
from viz.panels.claims import build_claims
from viz.panels.compare import build_compare, show_in
from viz.panels.contract import RunFiles, SessionLike
from viz.panels.evict import build_evict
from viz.panels.fuse import ENGINE, build_fuse
from viz.panels.kernels import build_kernels
from viz.panels.layers import build_layers
from viz.panels.play import build_play
from viz.panels.plots import draw_what_is_seen
from viz.player.assets import style

STYLE = Path(__file__).resolve().parents[2] / "assets" / "fusescope.css"
EVICT_STYLE = STYLE.parent / "evict" / "evict.css"
CHAT_STYLE = STYLE.parent / "chat" / "chat.css"
# How often the queue looks for requests, and for news of those that run; Gradio's own values on Windows are 0.05 and 0.1.
LOOK_S, PROGRESS_S = 0.02, 0.1
HEADER = """
<header class="fs-header">
  <h1>Fusescope</h1>
  <p>Watch a real LLM reuse the KV caches of retrieved documents: which tokens are recomputed, what that saves, and what it costs
  in quality. <strong>Start in Fuse: pick a question, press Run.</strong></p>
</header>
"""


def build(session: SessionLike, files: RunFiles | None = None) -> gr.Blocks:
    """Returns the page for a session; `files` defaults to engine.runfile."""
    if files is None:
        from engine import runfile

        files = runfile
    with gr.Blocks(title="Fusescope", fill_width=True, analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        draw_what_is_seen(page)
        # Before the tabs, whose events are named by their functions: the first one of a name keeps it.
        for endpoint in endpoints(session):
            visibility = "public" if endpoint.is_listed else "undocumented"
            gr.api(endpoint.call, api_name=endpoint.name, api_visibility=visibility, **ENGINE)
        gr.HTML(HEADER, apply_default_css=False, js_on_load=None)
        with gr.Tabs(selected="fuse", overflow_behavior="wrap") as tabs:
            with gr.Tab("Fuse", id="fuse") as fuse:
                viewer = build_fuse(session, files, page, tabs, fuse)
            with gr.Tab("Chat", id="chat") as chat:
                build_chat(session, viewer, chat, tabs, page)
            with gr.Tab("Play", id="play") as play:
                build_play(session, viewer, play)
            with gr.Tab("Evict", id="evict") as evict:
                build_evict(session, evict, page)
            with gr.Tab("Compare", id="compare") as compare_tab:
                compare = build_compare(session, compare_tab)
            with gr.Tab("Claims", id="claims") as claims_tab:
                claims = build_claims(session, claims_tab, compare.opened)
            with gr.Tab("Layers", id="layers") as layers:
                build_layers(session, layers)
                build_kernels(session)
        show_in(viewer, compare, tabs)
        follow(tabs, viewer.scenario)
        viewer.opened.then(tab_of_link(tabs), None, [tabs], queue=False, show_progress="hidden", api_visibility="private")
        compare.file_opened.then(claims.show, [compare.opened], [claims.view], show_progress="hidden", api_visibility="private")
    page.queue(default_concurrency_limit=4, max_size=32)
    # Gradio looks every millisecond whether somebody asked, except on Windows: a tenth of a core, taken from the engine all day.
    page._queue.sleep_when_free, page._queue.progress_update_sleep_when_free = LOOK_S, PROGRESS_S
    return page


def engine_events(page: gr.Blocks) -> frozenset[int]:
    """Returns the numbers of the page's events that use the engine."""
    return frozenset(number for number, event in page.fns.items() if event.concurrency_id == ENGINE["concurrency_id"])


def launch_options(password: str = "") -> dict[str, Any]:
    """Returns how the page is served: our look, no history shared between visitors, nothing from other hosts.

    Args:
        password: that a visitor has to give, under any name; "" lets everyone in.
    """
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
        "auth": (lambda name, given: same_text(given, password)) if password else None,
        "auth_message": "Type any name, and the password of this server." if password else None,
        "theme": look,
        "css": style(),
        "css_paths": [STYLE, EVICT_STYLE, CHAT_STYLE],
        "footer_links": ["api"],
        "run_history": False,
        # Off unless the environment says GRADIO_SSR_MODE=True, as Spaces do; it needs node beside Python.
        "ssr_mode": None,
        # Gradio's MCP route knows no password: it would list the tools to everyone, and could call none.
        "mcp_server": not password,
        "share": False,
        # Else Gradio ends a start whose first page takes more than three seconds, as on a busy or cold machine, to offer a tunnel instead.
        "_frontend": False,
        "show_error": True,
        "enable_monitoring": False,
        "max_file_size": "64mb",
        "state_session_capacity": 200,
    }
