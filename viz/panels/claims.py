"""The Claims tab: what was published beside what was measured here."""

from dataclasses import dataclass, replace

import gradio as gr

from engine.claims import load_claims
from engine.results import ResultSet
from viz.panels.claims_view import claims_view
from viz.panels.contract import SessionLike
from viz.panels.parts import first_view
from viz.panels.players import pack, player

QUIET = {"show_progress": "hidden", "api_visibility": "private"}


@dataclass(frozen=True, slots=True)
class ClaimsTab:
    """The tab's one component, and what fills it."""

    session: SessionLike
    view: gr.HTML

    def show(self, opened: ResultSet | None = None) -> dict[str, str]:
        """Returns all claims, judged by what is shipped and by the file a visitor opened."""
        evidence = self.session.evidence()
        extra = (opened,) if opened else ()
        return pack(claims_view(load_claims(), replace(evidence, sets=(*evidence.sets, *extra))))


def build_claims(session: SessionLike, tab: gr.Tab, opened: gr.State) -> ClaimsTab:
    """Builds the tab. Call inside `tab`.

    Args:
        opened: the results file that the visitor opened, or None.
    """
    with gr.Column(elem_classes="fs-panel"):
        gr.HTML("<h2 class='fs-heading'>Published claims, judged by our own results</h2>", apply_default_css=False, js_on_load=None)
        view = player("claims", "claims-view", "Published claims")
    claims = ClaimsTab(session, view)
    first_view(tab)(claims.show, [opened], [view], queue=False, **QUIET)
    return claims
