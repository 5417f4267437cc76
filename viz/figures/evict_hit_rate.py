"""Hit rate of every policy between LRU, the floor to beat, and MIN, the limit that sees the future."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from engine.cache_types import CacheRun
from viz import theme
from viz.figures import words
from viz.figures.evict_scores import FLOOR, LIMIT, Spread, Unit, by_policy, hit_rate, mean_gap, points, rate_words, spread
from viz.figures.labels import HALO
from viz.figures.marks import hatched

TITLE = "Who finds the most in the cache"
ROW_PX, BAR = 50, 0.34
# The gap and LRU's mark stand around the bars alone, so that nothing runs through the names above them.
GAP_HALF, MARK_HALF = 0.25, 0.22


@dataclass(frozen=True, slots=True)
class HitRow:
    """A policy's hit rate over the seeds replayed, and the share of the gap from LRU to MIN that it closes."""

    policy: str
    rate: Spread
    gap: float | None


@dataclass(frozen=True, slots=True)
class HitRateInfo:
    """Rows best first, the limit on top; `unit` is what is counted."""

    rows: tuple[HitRow, ...]
    unit: Unit

    def row(self, policy: str) -> HitRow | None:
        """Returns the row of a policy."""
        return next((row for row in self.rows if row.policy == policy), None)


def evict_hit_rate_info(runs: Sequence[CacheRun], unit: Unit = "tokens") -> HitRateInfo:
    """Returns the rates of the second half of the requests, when the cache is warm; several runs of a policy are seeds."""
    rows = [HitRow(name, spread([hit_rate(run, unit) for run in own]), mean_gap(own, runs)) for name, own in by_policy(runs).items()]
    return HitRateInfo(tuple(sorted(rows, key=lambda row: (row.policy != LIMIT, -row.rate.mean))), unit)


def evict_hit_rate_figure(info: HitRateInfo | None, reason: str = "Nothing was replayed.") -> go.Figure:
    """Returns a bar a policy under its name, or a titled empty figure that says why."""
    if info is None or not info.rows:
        return theme.empty_figure(TITLE, reason)
    subtitle = f"share of prompt {info.unit} found, second half of the requests; grey: the gap from LRU to MIN"
    layout = theme.base_layout(TITLE, ROW_PX * len(info.rows) + 150, theme.broken(subtitle), showlegend=False, bargap=0)
    layout.margin.update(l=16, r=26)
    layout.xaxis.update(range=[0, 1], tickformat=".0%", zeroline=True)
    layout.yaxis.update(range=[len(info.rows) - 0.25, -0.8], visible=False, fixedrange=True)
    figure = go.Figure(layout=layout)
    _add_gap(figure, info)
    floor = info.row(FLOOR)
    for place, row in enumerate(info.rows):
        _add_bar(figure, place, row)
        figure.add_annotation(
            x=0,
            xref="paper",
            y=place - GAP_HALF,
            text=_line(row, floor),
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            borderpad=0,
            bgcolor=HALO,
            font={"size": 13},
        )
    return figure


def _add_gap(figure: go.Figure, info: HitRateInfo) -> None:
    """Shades what lies between LRU and MIN, and marks LRU's rate on every other bar."""
    floor, limit = info.row(FLOOR), info.row(LIMIT)
    if floor is None:
        return
    x, gap = floor.rate.mean, {"fillcolor": theme.GRID, "opacity": 0.6, "line_width": 0, "layer": "below"}
    for place, row in enumerate(info.rows):
        if limit is not None:
            figure.add_shape(type="rect", x0=x, x1=limit.rate.mean, y0=place - GAP_HALF, y1=place + GAP_HALF, **gap)
        if row.policy != FLOOR:
            dashed = {"color": theme.BLUE, "width": 3, "dash": "2px,2px"}
            figure.add_shape(type="line", x0=x, x1=x, y0=place - MARK_HALF, y1=place + MARK_HALF, line=dashed)


def _add_bar(figure: go.Figure, place: int, row: HitRow) -> None:
    style = theme.policy_style(row.policy)
    hatch = {"min": ".", "lru": "/"}.get(row.policy, "")
    figure.add_bar(
        x=[row.rate.mean],
        y=[place],
        width=BAR,
        orientation="h",
        name=words.plain(style.label),
        marker=hatched(style.color, hatch, {"width": 1, "color": theme.INK}),
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [row.rate.hi - row.rate.mean],
            "arrayminus": [row.rate.mean - row.rate.lo],
            "color": theme.INK,
            "width": 5,
            "visible": row.rate.n > 1,
        },
        hovertext=[f"<b>{words.plain(style.label)}</b><br>{rate_words(row.rate.mean)}{_range(row.rate)}"],
        hoverinfo="text",
    )


def _line(row: HitRow, floor: HitRow | None) -> str:
    text = f"<b>{words.plain(theme.policy_style(row.policy).label)}</b>  {rate_words(row.rate.mean)}"
    if floor is None or row.policy == FLOOR:
        return text
    text += f"  {points(row.rate.mean - floor.rate.mean)}"
    if row.gap is None or row.policy == LIMIT:
        return text
    return f"{text}, closes {f'{100 * row.gap:.0f}'.replace('-', '−')} %"


def _range(rate: Spread) -> str:
    return f" (mean of {rate.n} seeds, {rate_words(rate.lo)} to {rate_words(rate.hi)})" if rate.n > 1 else ""


def evict_hit_rate_words(info: HitRateInfo | None) -> str:
    """Returns the rates in one sentence."""
    if info is None:
        return ""
    rates = [f"{theme.policy_style(row.policy).label} {rate_words(row.rate.mean)}{_range(row.rate)}" for row in info.rows]
    return f"Of the prompt {info.unit} of the second half, found in the cache: {', '.join(rates)}."
