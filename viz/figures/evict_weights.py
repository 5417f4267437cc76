"""What a policy has learned as the requests go by."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import CacheRun
from viz import theme
from viz.figures import words
from viz.figures.labels import spread_out

TITLE = "What the policy has learned"
PANEL_PX, GAP_PX, RIGHT, LABEL_GAP = 108, 34, 112, 16
# First word of a weight's name: what the panel is called.
GROUPS = {
    "alpha": "weight of each queue, α",
    "w": "weight of each token type, w",
    "mu": "gap between turns, mean of ln seconds, μ",
    "sigma": "gap between turns, spread of ln seconds, σ",
    "gamma": "decay with position, γ",
}


@dataclass(frozen=True, eq=False, slots=True)
class WeightPanel:
    """One panel: S values each of the series named, float32 [S, n]."""

    title: str
    names: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class WeightsInfo:
    """Panels from the top; requests int [S]."""

    policy: str
    requests: np.ndarray
    panels: tuple[WeightPanel, ...]


def evict_weights_info(run: CacheRun) -> WeightsInfo | None:
    """Returns the weights in groups, None for a policy that learns nothing."""
    snapshots = run.snapshots
    if not snapshots.weight_names or not len(snapshots.request):
        return None
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(snapshots.weight_names):
        groups.setdefault(name.split(" ")[0] if name.split(" ")[0] in GROUPS else name, []).append(i)
    panels = [
        WeightPanel(GROUPS.get(key, key), tuple(_series(snapshots.weight_names[i], key) for i in own), snapshots.weights[:, own])
        for key, own in groups.items()
    ]
    return WeightsInfo(run.policy, snapshots.request, tuple(panels))


def _series(name: str, group: str) -> str:
    """Returns what a line is called within its panel."""
    return name.removeprefix(f"{group} ").replace("_", " ") if group in GROUPS and name != group else ""


def evict_weights_figure(info: WeightsInfo | None, reason: str = "This policy learns nothing; choose another.") -> go.Figure:
    """Returns a panel a group, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    num = len(info.panels)
    inner_px = num * PANEL_PX + (num - 1) * GAP_PX
    layout = theme.base_layout(TITLE, inner_px + 158, words.plain(theme.policy_style(info.policy).label), showlegend=False)
    layout.margin.update(r=RIGHT, t=94)
    layout.xaxis.update(
        title_text="requests served", range=[0, max(1, int(info.requests[-1]))], tickformat=",d", anchor=f"y{num}" if num > 1 else "y"
    )
    figure = go.Figure(layout=layout)
    for i, panel in enumerate(info.panels):
        top_px = inner_px - i * (PANEL_PX + GAP_PX)
        _add_panel(figure, info, panel, i, (top_px - PANEL_PX) / inner_px, top_px / inner_px)
    return figure


def _add_panel(figure: go.Figure, info: WeightsInfo, panel: WeightPanel, number: int, bottom: float, top: float) -> None:
    axis = "y" if number == 0 else f"y{number + 1}"
    values = panel.values.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    span = [low - room, high + room]
    look = {
        "domain": [bottom, top],
        "range": span,
        "nticks": 4,
        "fixedrange": True,
        "anchor": "x",
        "tickformat": "~g",
        "title": {"text": ""},
    }
    base = figure.layout.yaxis.to_plotly_json()
    figure.update_layout({"yaxis" if number == 0 else f"yaxis{number + 1}": base | look})
    figure.add_annotation(
        x=0, xref="paper", y=top, yref="paper", text=words.plain(panel.title), xanchor="left", yanchor="bottom", showarrow=False, yshift=2
    )
    ends = [(float(value) - span[0]) / (span[1] - span[0]) * PANEL_PX for value in values[-1]]
    for i, (name, place) in enumerate(zip(panel.names, spread_out(ends, LABEL_GAP, 4, PANEL_PX - 4), strict=True)):
        color, dash = _look(name, i)
        figure.add_scatter(
            x=info.requests,
            y=values[:, i],
            yaxis=axis,
            mode="lines",
            name=words.plain(name or panel.title),
            line={"color": color, "width": 2.5, "dash": dash},
            hovertext=[f"{words.plain(name or panel.title)}: {value:.3g}" for value in values[:, i]],
            hoverinfo="text+x",
        )
        figure.add_annotation(
            x=1,
            xref="paper",
            y=float(values[-1, i]),
            yref=axis,
            ax=14,
            ay=ends[i] - place,
            text=words.plain(f"{name} {values[-1, i]:.3g}".strip()),
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=color,
            standoff=1,
            borderpad=1,
            font={"size": 13},
        )


def _look(name: str, number: int) -> tuple[str, str]:
    """Returns colour and dash of a line: those of its queue or token type where it has one."""
    band = theme.QUEUES.get(name) or theme.KINDS.get({"cot": "thinking"}.get(name, name))
    dashes = ("solid", *theme.DASHES)
    return (band.color if band else theme.MORE_COLORS[number % len(theme.MORE_COLORS)], dashes[number % len(dashes)])


def evict_weights_words(info: WeightsInfo | None) -> str:
    """Returns first and last value of every weight."""
    if info is None:
        return ""
    said = [f"{panel.title}: {', '.join(_change(panel, i) for i in range(len(panel.names)))}" for panel in info.panels]
    return f"From the first to the last moment: {'; '.join(said)}."


def _change(panel: WeightPanel, number: int) -> str:
    return f"{panel.names[number]} {panel.values[0, number]:.3g} → {panel.values[-1, number]:.3g}".strip()
