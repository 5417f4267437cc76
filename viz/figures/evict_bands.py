"""Stacked areas over the requests of a workload: what several pictures of a cache's contents are drawn with."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz import theme
from viz.figures import words
from viz.figures.labels import room_of, spread_out, whole_ticks

HEIGHT, RIGHT, LABEL_GAP = 380, 112, 18


@dataclass(frozen=True, eq=False, slots=True)
class Bands:
    """Args:
    requests: int [S], after which request; names: B bands from the bottom; counts: int [S, B], blocks of each.
    capacity: blocks the cache holds.
    """

    requests: np.ndarray
    names: tuple[str, ...]
    counts: np.ndarray
    capacity: int


def bands_figure(bands: Bands, styles: Mapping[str, theme.BandStyle], title: str, subtitle: str, height: int = HEIGHT) -> go.Figure:
    """Returns the areas with their names at the right end."""
    layout = theme.base_layout(title, height, subtitle, showlegend=False)
    layout.margin.r = RIGHT
    layout.hovermode = "x unified"
    last = max(1, int(bands.requests[-1]))
    layout.xaxis.update(title_text="requests served", range=[0, last], tickvals=whole_ticks(last), tickformat=",d", showgrid=False)
    layout.yaxis.update(title_text="blocks", range=[0, bands.capacity], tickformat=",d", fixedrange=True)
    figure = go.Figure(layout=layout)
    for i, name in enumerate(bands.names):
        style, share = styles[name], bands.counts[:, i] / bands.capacity
        figure.add_scatter(
            x=bands.requests,
            y=bands.counts[:, i],
            stackgroup="blocks",
            mode="lines",
            name=style.label,
            line={"width": 1, "color": theme.INK},
            fillcolor=style.color,
            fillpattern={"shape": style.hatch, "size": 7, "solidity": 0.22, "fgcolor": "#FFFFFF", "bgcolor": style.color},
            hovertext=[
                f"{style.label}: {count:,} blocks, {words.percent(part)}" for count, part in zip(bands.counts[:, i], share, strict=True)
            ],
            hoverinfo="text",
        )
    _add_names(figure, bands, styles)
    return figure


def _add_names(figure: go.Figure, bands: Bands, styles: Mapping[str, theme.BandStyle]) -> None:
    """Writes each band's name beside its right end; bands that have vanished there are named where they are largest."""
    room = room_of(figure)
    ends = bands.counts[-1]
    middles = np.cumsum(ends) - ends / 2
    shown = [i for i in range(len(bands.names)) if bands.counts[:, i].any()]
    heights = [float(middles[i]) / bands.capacity * room for i in shown]
    for i, height, place in zip(shown, heights, spread_out(heights, LABEL_GAP, 8, room - 8), strict=True):
        figure.add_annotation(
            x=1,
            xref="paper",
            y=float(middles[i]),
            ax=16,
            ay=height - place,
            text=f"{styles[bands.names[i]].label} {words.percent(float(ends[i]) / bands.capacity)}",
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=theme.INK,
            standoff=1,
            borderpad=1,
            font={"size": 13},
        )
