"""How far the fused K and V are from those of full prefill, layer by layer."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.types import Run
from viz import theme
from viz.figures import words


@dataclass(frozen=True, eq=False, slots=True)
class KvCurve:
    """distance: float [L, 2], relative L2 distance of K and of V."""

    method: str
    distance: np.ndarray


@dataclass(frozen=True, slots=True)
class KvDistanceInfo:
    """One curve pair per method other than full prefill."""

    curves: tuple[KvCurve, ...]


def kv_distance_info(run: Run) -> KvDistanceInfo:
    """Returns the distances of all methods that have them."""
    return KvDistanceInfo(
        tuple(
            KvCurve(method.method, method.kv_distance)
            for method in run.methods
            if method.kv_distance is not None and method.method != "full"
        )
    )


def kv_distance_figure(
    info: KvDistanceInfo | None, reason: str = "Needs a run with full prefill and a method that reuses caches."
) -> go.Figure:
    """Returns the curves, K solid and V dotted, or a titled empty figure that says why."""
    if info is None or not info.curves:
        return theme.empty_figure("KV distance to full prefill", reason)
    layout = theme.base_layout("KV distance to full prefill", 340, hovermode="x unified")
    layout.xaxis.update(title_text="layer", fixedrange=True)
    layout.yaxis.update(title_text="relative distance", rangemode="tozero", fixedrange=True)
    figure = go.Figure(layout=layout)
    for curve in info.curves:
        color, symbol = theme.method_color(curve.method), theme.method_symbol(curve.method)
        for column, part, dash in ((0, "K", "solid"), (1, "V", "dot")):
            figure.add_scatter(
                x=np.arange(len(curve.distance)),
                y=np.round(curve.distance[:, column].astype(float), 4),
                mode="lines+markers",
                name=f"{words.plain(theme.method_label(curve.method))} {part}",
                line={"color": color, "dash": dash, "width": 2},
                marker={"symbol": symbol if part == "K" else f"{symbol}-open", "size": 6, "color": color},
                hovertemplate="%{y:.3f}",
            )
    return figure
