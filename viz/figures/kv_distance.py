"""How far the fused K and V are from those of full prefill, layer by layer."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.types import Run
from viz import theme
from viz.figures import words

PARTS = ("K", "V")
NO_DISTANCE = "Needs a run with full prefill and a method that reuses caches."


@dataclass(frozen=True, eq=False, slots=True)
class KvCurve:
    """distance: float [L, 2], relative L2 distance of K and of V."""

    method: str
    distance: np.ndarray


@dataclass(frozen=True, slots=True)
class KvDistanceInfo:
    """One curve pair per method other than full prefill; `unknown` are the methods whose distance cannot be taken."""

    curves: tuple[KvCurve, ...]
    unknown: tuple[str, ...] = ()


def kv_distance_info(run: Run) -> KvDistanceInfo:
    """Returns the distances of all methods that have them."""
    others = [method for method in run.methods if method.method != "full"]
    return KvDistanceInfo(
        tuple(KvCurve(method.method, method.kv_distance) for method in others if method.kv_distance is not None),
        tuple(method.method for method in others if method.kv_distance is None),
    )


def kv_distance_figure(info: KvDistanceInfo | None, reason: str = NO_DISTANCE) -> go.Figure:
    """Returns one panel for K and one for V, or a titled empty figure that says why."""
    if info is None or not info.curves:
        return theme.empty_figure("KV distance to full prefill", reason)
    layout = theme.base_layout("KV distance to full prefill", 500 + 11 * len(info.curves), theme.broken(_unknown(info)), hovermode="x")
    layout.hoverlabel.namelength = 30
    layout.xaxis.update(title_text="layer", fixedrange=True, anchor="y2")
    layout.yaxis.update(title_text="K, relative distance", rangemode="tozero", fixedrange=True, domain=[0.54, 1])
    layout.yaxis2 = layout.yaxis.to_plotly_json() | {"domain": [0, 0.46], "title": {"text": "V, relative distance", "font": {"size": 13}}}
    figure = go.Figure(layout=layout)
    for curve in info.curves:
        for column in range(len(PARTS)):
            _add_curve(figure, curve, column)
    return figure


def _unknown(info: KvDistanceInfo) -> str:
    names = ", ".join(words.plain(theme.method_label(name)) for name in info.unknown)
    return f"not comparable: {names}" if names else ""


def _add_curve(figure: go.Figure, curve: KvCurve, column: int) -> None:
    color = theme.method_color(curve.method)
    values = np.round(curve.distance[:, column].astype(float), 4)
    # Few markers, at other layers for every method, so that curves on top of each other stay apart.
    offset = sum(map(ord, curve.method)) % 6
    marked = np.isin(np.arange(len(values)) % 6, offset) * 8
    figure.add_scatter(
        x=np.arange(len(values)),
        y=values,
        yaxis="y" if column == 0 else "y2",
        mode="lines+markers",
        name=words.plain(theme.method_label(curve.method)),
        showlegend=column == 0,
        line={"color": color, "dash": theme.method_dash(curve.method), "width": 2},
        marker={"symbol": theme.method_symbol(curve.method), "size": marked, "color": color, "line": {"width": 0}},
        hovertemplate="%{y:.3f}",
    )
