"""How alike the choices of two methods are: Jaccard index of their token sets, for every pair."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz import theme
from viz.figures import words
from viz.figures.agreement import AgreementInfo

TITLE = "How much two methods agree"


@dataclass(frozen=True, eq=False, slots=True)
class OverlapInfo:
    """Args:
    shares: float64 [M], part of the document tokens that each method recomputes.
    jaccard: float64 [M, M], tokens in both sets over tokens in either.
    common: int64 [M, M], tokens in both sets.
    by_chance: Jaccard index to be expected of two random sets of the mean share.
    """

    methods: tuple[str, ...]
    shares: np.ndarray
    jaccard: np.ndarray
    common: np.ndarray
    by_chance: float


def overlap_info(choices: AgreementInfo) -> OverlapInfo:
    """Returns the overlap of every pair of the methods that choose."""
    chosen = choices.chosen.astype(np.int64)
    common, sizes = chosen @ chosen.T, chosen.sum(axis=1)
    either = sizes[:, None] + sizes[None] - common
    shares = sizes / max(1, chosen.shape[1])
    share = float(shares.mean()) if len(shares) else 0.0
    return OverlapInfo(choices.methods, shares, common / np.maximum(either, 1), common, share / (2 - share))


def overlap_figure(info: OverlapInfo | None, reason: str = "Needs two methods that choose some of the tokens.") -> go.Figure:
    """Returns the matrix, or a titled empty figure that says why."""
    if info is None or len(info.methods) < 2:
        return theme.empty_figure(TITLE, reason)
    num = len(info.methods)
    labels = [words.plain(theme.method_label(name)) for name in info.methods]
    subtitle = f"tokens in both sets, percent of those in either; two random sets would share {words.percent(info.by_chance)}"
    layout = theme.base_layout(TITLE, 140 + max(34 * num, 120), theme.broken(subtitle))
    numbers = [str(i) for i in range(1, num + 1)]
    # What is added to a method stands on a line of its own: a phone needs the room for the matrix.
    rows = [f"{label} {number}".replace(" + ", "<br>+ ") for label, number in zip(labels, numbers, strict=True)]
    layout.margin.l = 20 + int(6.7 * max(len(line) for row in rows for line in row.split("<br>")))
    layout.margin.b = 36
    layout.xaxis.update(tickvals=list(range(num)), ticktext=numbers, showgrid=False, fixedrange=True, side="bottom", zeroline=False)
    layout.yaxis.update(
        tickvals=list(range(num)),
        ticktext=rows,
        range=[num - 0.5, -0.5],
        showgrid=False,
        fixedrange=True,
        zeroline=False,
    )
    figure = go.Figure(layout=layout)
    figure.add_heatmap(
        x=list(range(num)),
        y=list(range(num)),
        z=np.round(100 * info.jaccard, 1),
        zmin=0,
        zmax=100,
        colorscale=[[0, "#F3F4F6"], [1, theme.SKY]],
        showscale=False,
        xgap=1,
        ygap=1,
        texttemplate="%{z:.0f}",
        # One dark ink reads on every shade of the scale, which the middle of a scale from dark to light does not allow.
        textfont={"size": 12, "color": "#111111"},
        hovertext=[[_hover(info, labels, i, j) for j in range(num)] for i in range(num)],
        hoverinfo="text",
    )
    return figure


def _hover(info: OverlapInfo, labels: list[str], i: int, j: int) -> str:
    if i == j:
        return f"<b>{labels[i]}</b><br>{info.common[i, i]:,} tokens ({words.percent(float(info.shares[i]))})"
    shared = f"{info.common[i, j]:,} tokens in both,<br>{words.percent(float(info.jaccard[i, j]))} of those in either (Jaccard index)"
    return f"<b>{labels[i]}</b> and <b>{labels[j]}</b><br>{shared}"
