"""From a board to the values of every output of the Evict tab. Knows nothing of Gradio."""

from typing import Any, NamedTuple

import plotly.graph_objects as go

from viz.figures.evict_ages import evict_ages_figure, evict_ages_info, evict_ages_words
from viz.figures.evict_capacity import evict_capacity_figure, evict_capacity_words
from viz.figures.evict_hit_rate import evict_hit_rate_figure, evict_hit_rate_info, evict_hit_rate_words
from viz.figures.evict_hit_time import evict_hit_time_figure, evict_hit_time_info, evict_hit_time_words
from viz.figures.evict_kinds import evict_kinds_figure, evict_kinds_info, evict_kinds_words
from viz.figures.evict_misses import evict_misses_figure, evict_misses_info, evict_misses_words
from viz.figures.evict_occupancy import evict_occupancy_figure, evict_occupancy_info, evict_occupancy_words
from viz.figures.evict_regret import evict_regret_figure, evict_regret_info, evict_regret_words
from viz.figures.evict_scores import Unit
from viz.figures.evict_weights import evict_weights_figure, evict_weights_info, evict_weights_words
from viz.panels.evict_board import Board, details, headline, how_measured, losses, notices
from viz.panels.evict_tables import contents_table, misses_table, regret_data, results_table

EMPTY = "Nothing was replayed yet; press Replay."


class RatesView(NamedTuple):
    """What depends on the unit that hits are counted in."""

    rate: go.Figure
    rate_words: str
    time: go.Figure
    time_words: str


class SettingView(NamedTuple):
    """What compares the policies."""

    banner: dict[str, Any]
    capacity: go.Figure
    capacity_words: str
    misses: go.Figure
    misses_words: str
    results: dict[str, Any]
    misses_table: dict[str, Any]
    how: str


class PolicyView(NamedTuple):
    """What looks into one policy."""

    occupancy: go.Figure
    occupancy_words: str
    regret: go.Figure
    regret_words: str
    regret_cases: dict[str, Any] | None
    weights: go.Figure
    weights_words: str
    kinds: go.Figure
    kinds_words: str
    ages: go.Figure
    ages_words: str
    contents: dict[str, Any]


def rates_view(board: Board | None, unit: Unit) -> RatesView:
    """Returns rates of every policy, in all and over time."""
    rate = evict_hit_rate_info(board.runs, unit) if board else None
    time = evict_hit_time_info(board.runs, unit) if board else None
    return RatesView(
        badged(evict_hit_rate_figure(rate, EMPTY), board),
        evict_hit_rate_words(rate),
        badged(evict_hit_time_figure(time, EMPTY), board),
        evict_hit_time_words(time),
    )


def setting_view(board: Board | None) -> SettingView:
    """Returns banner, capacity curve, causes of misses and tables."""
    misses, curve = (evict_misses_info(board.runs), board.curve) if board else (None, None)
    few = "Move the slider, or press “Draw the whole curve”."
    return SettingView(
        banner(board),
        badged(evict_capacity_figure(curve, few if board else EMPTY), board),
        evict_capacity_words(curve),
        badged(evict_misses_figure(misses, EMPTY), board),
        evict_misses_words(misses),
        results_table(board),
        misses_table(board),
        how_measured(board) if board else "",
    )


def policy_view(board: Board | None, policy: str | None) -> PolicyView:
    """Returns the pictures of one policy's first seed."""
    run = board.run(policy) if board else None
    why = [EMPTY] if run is None else []
    occupancy, kinds = (evict_occupancy_info(run), evict_kinds_info(run)) if run else (None, None)
    regret, weights, ages = (evict_regret_info(run), evict_weights_info(run), evict_ages_info(run)) if run else (None, None, None)
    return PolicyView(
        badged(evict_occupancy_figure(occupancy, *why), board),
        evict_occupancy_words(occupancy),
        badged(evict_regret_figure(regret, *why), board),
        evict_regret_words(regret),
        regret_data(regret),
        badged(evict_weights_figure(weights, *why), board),
        evict_weights_words(weights),
        badged(evict_kinds_figure(kinds, *why), board),
        evict_kinds_words(kinds),
        badged(evict_ages_figure(ages, *why), board),
        evict_ages_words(ages),
        contents_table(run, board.badge if board else ""),
    )


def banner(board: Board | None) -> dict[str, Any]:
    """Returns badge, setting, headline and what to know."""
    if board is None:
        return {"kind": "none", "badge": "NOTHING REPLAYED", "details": "", "question": "", "verdict": EMPTY, "notices": []}
    return {
        "kind": board.kind,
        "badge": board.badge,
        "details": details(board),
        "question": "",
        "verdict": headline(board).replace(" %", "\N{NO-BREAK SPACE}%"),
        "ranking": losses(board),
        "notices": notices(board),
    }


def badged(figure: go.Figure, board: Board | None) -> go.Figure:
    """Returns a figure whose title says how its numbers came about."""
    if board is not None:
        title, *rest = figure.layout.title.text.split("<br>")
        figure.layout.title.text = "<br>".join([f"{title}  <span style='font-size:12px'>{board.badge}</span>", *rest])
    return figure
