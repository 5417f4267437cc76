"""Where a request of the Fuse tab runs: the built-in engine, or the SGLang server that the settings name. Nothing is shown without one."""

from dataclasses import dataclass

import gradio as gr

from engine.errors import BadRequest
from viz.panels.contract import LaneLike, SessionLike
from viz.panels.place import BUILT_IN, SERVER


@dataclass(frozen=True, slots=True)
class Place:
    """The components."""

    where: gr.Radio
    prefix_cache: gr.Checkbox


def build_place(session: SessionLike) -> Place:
    """Builds the selector, hidden where there is nothing to choose. Call inside a gr.Column."""
    lane = session.sglang
    where = gr.Radio(
        [("Built-in engine", BUILT_IN), *([(lane.label, SERVER)] if lane else [])],
        value=BUILT_IN,
        label="Where it runs",
        info="SGLang runs the same methods by a plugin; times are then taken at the client.",
        elem_id="fuse-place",
        visible=lane is not None,
    )
    prefix_cache = gr.Checkbox(
        True,
        label="Prefix caching beside them",
        info="What SGLang does by itself: the same prompt a second time. Passages in another order would share the system prompt alone.",
        elem_id="fuse-prefix-cache",
        visible=False,
    )
    where.input(
        lambda place: gr.Checkbox(visible=place == SERVER),
        [where],
        [prefix_cache],
        show_progress="hidden",
        api_visibility="private",
        queue=False,
    )
    return Place(where, prefix_cache)


def server_of(session: SessionLike) -> LaneLike:
    """Returns the lane to the server. Raises BadRequest where the settings name none."""
    if session.sglang is None:
        raise BadRequest("No SGLang server is named here; choose the built-in engine, or start the app with FUSESCOPE_SGLANG_URL set.")
    return session.sglang
