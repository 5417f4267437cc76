"""Who a page belongs to, as far as the library is concerned."""

import gradio as gr

from engine.errors import BadRequest


def owner_of(request: gr.Request) -> str:
    """Returns the owner of what a page's visitor uploads: the page's session, which ends when it is closed or reloaded.

    Raises BadRequest where there is none: such documents would belong to everybody.
    """
    if not request.session_hash:
        raise BadRequest("This page has no session, so it cannot have documents; reload it.")
    return f"page-{request.session_hash}"
