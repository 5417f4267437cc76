"""Hit rate of every policy as the requests go by."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import CacheRun
from viz import theme
from viz.figures import words
from viz.figures.evict_scores import Unit, by_policy, rate_words
from viz.figures.labels import room_of, spread_out

TITLE = "Hit rate as requests go by"
HEIGHT, NUM_WINDOWS, RIGHT, LABEL_GAP = 400, 40, 132, 17


@dataclass(frozen=True, eq=False, slots=True)
class HitTimeInfo:
    """Args:
    ends: int [n], the request each window ends before; rates: float64 [P, n], by policy.
    window: requests a window.
    """

    policies: tuple[str, ...]
    ends: np.ndarray
    rates: np.ndarray
    window: int
    unit: Unit


def evict_hit_time_info(runs: Sequence[CacheRun], unit: Unit = "tokens") -> HitTimeInfo | None:
    """Returns rates in windows that follow one another, of each policy's first seed; None without runs."""
    first = {name: own[0] for name, own in by_policy(runs).items()}
    if not first:
        return None
    num = next(iter(first.values())).num_requests
    edges = np.unique(np.linspace(0, num, min(NUM_WINDOWS, num) + 1).astype(int))
    rates = [_rates(run, unit, edges) for run in first.values() if run.num_requests == num]
    names = tuple(name for name, run in first.items() if run.num_requests == num)
    return HitTimeInfo(names, edges[1:], np.array(rates), int(edges[1]), unit)


def _rates(run: CacheRun, unit: Unit, edges: np.ndarray) -> np.ndarray:
    r = run.requests
    hits, asked = (r.hit_tokens, r.prompt_tokens) if unit == "tokens" else (r.hit_blocks, r.prompt_blocks)
    return np.add.reduceat(hits, edges[:-1]) / np.maximum(np.add.reduceat(asked, edges[:-1]), 1)


def evict_hit_time_figure(info: HitTimeInfo | None, reason: str = "Nothing was replayed.") -> go.Figure:
    """Returns a line a policy with its name at the end, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    subtitle = f"share of prompt {info.unit} found in the cache, in windows of {info.window:,} requests"
    layout = theme.base_layout(TITLE, HEIGHT, theme.broken(subtitle), showlegend=False)
    layout.margin.r = RIGHT
    layout.hovermode = "x unified"
    layout.xaxis.update(title_text="requests served", range=[0, int(info.ends[-1])], tickformat=",d")
    span = rate_range(info.rates)
    layout.yaxis.update(range=span, tickformat=".0%", fixedrange=True)
    figure = go.Figure(layout=layout)
    for name, rates in zip(info.policies, info.rates, strict=True):
        style = theme.policy_style(name)
        figure.add_scatter(
            x=info.ends,
            y=np.round(rates, 5),
            mode="lines",
            name=words.plain(style.label),
            line={"color": style.color, "width": 2.5, "dash": style.dash},
            hovertext=[f"{words.plain(style.label)} {rate_words(rate)}" for rate in rates],
            hoverinfo="text",
        )
    add_line_names(figure, info.policies, info.rates[:, -1], span)
    return figure


def rate_range(rates: np.ndarray) -> tuple[float, float]:
    """Returns the ends of an axis for rates: from 0, or from below the lowest where all are high and would lie on one another."""
    low, high = float(rates.min()), float(rates.max())
    room = 0.08 * (high - low) or 0.05
    return (max(0.0, low - room) if low > 0.3 else 0.0), min(1.0, high + room)


def add_line_names(figure: go.Figure, policies: Sequence[str], ends: np.ndarray, span: tuple[float, float]) -> None:
    """Writes the policies' names right of where their lines end, apart from each other; `span` are the ends of the axis."""
    room = room_of(figure)
    heights = [(float(end) - span[0]) / (span[1] - span[0]) * room for end in ends]
    for name, end, height, place in zip(policies, ends, heights, spread_out(heights, LABEL_GAP, 6, room - 6), strict=True):
        figure.add_annotation(
            x=1,
            xref="paper",
            y=float(end),
            ax=18,
            ay=height - place,
            text=words.plain(words.shorten(theme.policy_style(name).label.split(" (")[0], 17)),
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=theme.policy_style(name).color,
            standoff=1,
            borderpad=1,
            font={"size": 13},
        )


def evict_hit_time_words(info: HitTimeInfo | None) -> str:
    """Returns one sentence on the best policy, the limit aside, in the first and in the last window."""
    rivals = [i for i, name in enumerate(info.policies) if name != "min"] if info else []
    if info is None or not rivals:
        return ""
    first, last = (max(rivals, key=lambda i: info.rates[i, column]) for column in (0, -1))
    said = [f"{theme.policy_style(info.policies[i]).label} with {rate_words(info.rates[i, c])}" for i, c in ((first, 0), (last, -1))]
    return f"Best without the future in the first window: {said[0]}; in the last: {said[1]}."
