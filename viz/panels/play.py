"""The Play tab: the run that the Fuse tab shows, as a film with one playhead."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.serving.sglang_lane import PREFIX_CACHE
from engine.types import Run
from viz.panels.address import link_base
from viz.panels.contract import SessionLike
from viz.panels.film import Film, film_of
from viz.panels.fuse_flip_view import FlipPair
from viz.panels.run_download import SUFFIX, file_name, write_download
from viz.panels.run_viewer import RunViewer
from viz.player.component import TEMPLATE, component_script, component_value
from viz.player.export import export_html
from viz.player.grid import time_points
from viz.player.pack import pack_run

QUIET = {"show_progress": "hidden", "api_visibility": "private"}
NO_RUN = "<p class='fs-muted'>There is no run yet. Pick a question in the Fuse tab and press Run.</p>"
# Whether the player can be seen is known to the page alone.
SEEN = """(...values) => [...values.slice(0, -1), Boolean(document.querySelector("#play-run .fs-root")?.getClientRects().length)]"""


def build_play(session: SessionLike, viewer: RunViewer, tab: gr.Tab) -> None:
    """Builds the tab; the run is handed over whenever the tab is opened, and when one was measured meanwhile. Call inside `tab`."""
    empty = gr.HTML(NO_RUN, visible=False, apply_default_css=False, js_on_load=None, elem_id="play-empty")
    film = gr.HTML(
        html_template=TEMPLATE,
        js_on_load=component_script((*session.method_names(), PREFIX_CACHE)),
        server_functions=[recorded_runs(session)],
        apply_default_css=False,
        elem_id="play-run",
        label="Player",
    )
    page = gr.DownloadButton("Download this run as one page", elem_id="play-page", size="md", visible=False)
    seen = gr.Checkbox(False, visible=False)
    calls, asked, shown = PlayCallbacks(session), [viewer.run, viewer.status, viewer.pair], [empty, film, page]
    tab.select(calls.show, asked, shown, queue=False, **QUIET)
    viewer.measured.then(calls.show_if_seen, [*asked, seen], shown, js=SEEN, queue=False, **QUIET)


@dataclass(frozen=True, slots=True)
class PlayCallbacks:
    """Callbacks of one page; holds nothing of a visitor."""

    session: SessionLike

    def show(self, run: Run | None, status: Any, pair: FlipPair | None) -> list[object]:
        """Returns the line of an empty tab, the film and its one-page download."""
        film = film_of(self.session, run, status, pair)
        if film is None:
            return [gr.HTML(visible=True), gr.skip(), gr.skip()]
        points = self._points(film.run)
        page = export_html(film.run, points, film.ghost, self._points_of_ghost(film), film.flip)
        alone = write_download(file_name(film.run).removesuffix(SUFFIX) + ".html", page.encode())
        return [gr.HTML(visible=False), self._value(film, points), gr.DownloadButton(value=alone, visible=True)]

    def show_if_seen(self, run: Run | None, status: Any, pair: FlipPair | None, seen: bool) -> list[object]:
        """Returns what `show` returns where the player can be seen; elsewhere the next visit of the tab brings the run."""
        return self.show(run, status, pair) if seen else [gr.skip()] * 3

    def _value(self, film: Film, points: dict[str, Any] | None) -> dict[str, str]:
        return component_value(
            film.run,
            points,
            film.reason,
            ghost=film.ghost,
            flip=film.flip,
            otherTimes=self._points_of_ghost(film),
            runs=[{"id": scenario.name, "title": scenario.questions[0].question} for scenario in self.session.scenarios()],
            url=True,
            tab="play",
            linkBase=link_base(),
            engine=True,
        )

    def _points_of_ghost(self, film: Film) -> dict[str, Any] | None:
        return self._points(film.ghost) if film.ghost else None

    def _points(self, run: Run) -> dict[str, Any] | None:
        return next((found for found in (time_points(results, run) for results in self.session.results()) if found), None)


def recorded_runs(session: SessionLike) -> Callable[[str], str]:
    """Returns what the player fetches another scenario's recorded run with."""

    def packed_run(name: str) -> str:
        """Returns the packed run as JSON. Raises gr.Error, whose sentence the player shows."""
        try:
            run = session.recorded(str(session.scenario(name).name))
        except EngineError as error:
            raise gr.Error(str(error)) from None
        if run is None:
            raise gr.Error(f"No run of {name} is recorded; press Run in the Fuse tab to measure one.")
        return json.dumps(pack_run(run), separators=(",", ":"))

    return packed_run
