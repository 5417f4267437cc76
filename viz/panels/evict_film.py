"""The film of the Evict tab: the policies of the board over one load, with one playhead, and the page to take it along."""

import re
from collections.abc import Callable
from typing import Any

import gradio as gr

from engine.cache_types import CacheRun
from engine.errors import EngineError
from viz.figures.evict_scores import by_policy
from viz.panels.address import link_base
from viz.panels.contract import ReplaysLike
from viz.panels.evict_board import Board, workload_label
from viz.panels.run_download import write_download
from viz.player.component import TEMPLATE, film_script, film_value
from viz.player.export import export_film

Follow = Callable[[gr.events.Dependency], object]
QUIET = {"show_progress": "hidden", "api_visibility": "private"}
# Whether the film can be seen is known to the page alone.
SEEN = """(...values) => [...values.slice(0, -1), Boolean(document.querySelector("#evict-film .fs-root")?.getClientRects().length)]"""
NO_RUNS = "<p class='fs-muted'>Nothing was replayed yet; press Replay.</p>"


def build_film(replays: ReplaysLike, board: gr.State, tab: gr.Tab) -> Follow:
    """Builds the film, to which the runs are handed over whenever the tab is opened. Call inside `tab`.

    Returns what continues an event that has changed the board: the film follows where it can be seen.
    """
    empty = gr.HTML(NO_RUNS, visible=False, apply_default_css=False, js_on_load=None, elem_id="evict-film-empty")
    film = gr.HTML(
        html_template=TEMPLATE,
        js_on_load=film_script(replays.policy_names()),
        apply_default_css=False,
        elem_id="evict-film",
        label="Film",
    )
    page = gr.DownloadButton("Download this film as one page", elem_id="evict-film-page", size="md", visible=False)

    def show(board: Board | None) -> list[Any]:
        if board is None:
            return [gr.HTML(visible=True), gr.skip(), gr.DownloadButton(visible=False)]
        try:
            value, alone = film_of(replays, board)
        except EngineError as error:
            gr.Warning(str(error).replace("<", "‹").replace(">", "›"), title="No film")
            return [gr.skip()] * 3
        return [gr.HTML(visible=False), value, gr.DownloadButton(value=alone, visible=True)]

    def show_if_seen(board: Board | None, seen: bool) -> list[Any]:
        return show(board) if seen else [gr.skip()] * 3

    seen, shown = gr.Checkbox(False, visible=False), [empty, film, page]
    tab.select(show, [board], shown, queue=False, **QUIET)
    return lambda event: event.then(show_if_seen, [board, seen], shown, js=SEEN, queue=False, **QUIET)


def film_of(replays: ReplaysLike, board: Board) -> tuple[dict[str, str], str]:
    """Returns the player's value and the path of the one-page file. Raises BadRequest."""
    runs, title, is_fresh = film_runs(board), workload_label(board.first.workload), board.origin == "replayed"
    files = {run.policy: replays.dump(run) for run in runs}
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", f"{board.first.workload}-{board.first.capacity_blocks}-{board.first.seed}").strip("-")
    page = export_film(runs, files, title, is_fresh)
    value = film_value(runs, title, is_fresh, url=True, tab="evict", view="film", linkBase=link_base())
    return value, write_download(f"fusescope-{plain[:100]}.html", page.encode())


def film_runs(board: Board) -> list[CacheRun]:
    """Returns each policy's first seed, of the load and capacity of the policy that is looked at first."""
    first = board.run(None)

    def setting(run: CacheRun) -> tuple[str, int, int, int, int]:
        return run.workload, run.capacity_blocks, run.block_tokens, run.seed, run.num_requests

    return [own[0] for own in by_policy(run for run in board.runs if setting(run) == setting(first)).values()]
