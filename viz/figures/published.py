"""A published figure redrawn from its numbers, in grey outlines on axes of its own: never mixed with what was measured here."""

from dataclasses import dataclass

import plotly.graph_objects as go

from viz import theme
from viz.figures import words
from viz.figures.labels import room_of, spread_out

HEIGHT, BOTTOM, LABEL_GAP = 590, 64, 17


@dataclass(frozen=True, slots=True)
class PublishedCurve:
    """One method's points: (time to first token in seconds, quality), lowest ratio first."""

    method: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class PublishedInfo:
    """A figure of a paper: where it stands, what it was measured with, and its curves over `ratios`."""

    title: str
    setting: str
    metric: str
    ratios: tuple[float, ...]
    curves: tuple[PublishedCurve, ...]


def published_figure(info: PublishedInfo) -> go.Figure:
    """Returns the curves."""
    layout = theme.base_layout(
        words.plain(info.title), HEIGHT, "Their numbers, their hardware: do not compare the seconds.", showlegend=False
    )
    layout.margin.update(b=BOTTOM, l=66, r=14)
    times = [time for curve in info.curves for time, _ in curve.points]
    values = [value for curve in info.curves for _, value in curve.points]
    tall = max(values) - min(values)
    bounds = (min(values) - 0.06 * tall, max(values) + 0.06 * tall)
    layout.xaxis.update(title_text="time to first token, seconds", range=[0.0, max(times) * 1.24])
    layout.yaxis.update(title_text=f"{words.plain(info.metric)} (higher is better)", range=list(bounds))
    figure = go.Figure(layout=layout)
    for curve in info.curves:
        _add_curve(figure, curve, info)
    _add_labels(figure, info, bounds)
    return figure


def _add_curve(figure: go.Figure, curve: PublishedCurve, info: PublishedInfo) -> None:
    label = words.plain(theme.method_label(curve.method))
    ratios = [f", ratio {ratio:g}" for ratio in info.ratios] if len(curve.points) == len(info.ratios) else [""] * len(curve.points)
    figure.add_scatter(
        x=[time for time, _ in curve.points],
        y=[value for _, value in curve.points],
        mode="lines+markers",
        name=label,
        line={"color": theme.GREY, "width": 1, "dash": "dot"},
        marker={"symbol": f"{theme.method_symbol(curve.method)}-open", "size": 10, "color": theme.INK, "line": {"width": 1.5}},
        hovertext=[
            f"<b>{label}</b>{ratio} (published)<br>first token after {words.seconds(time)}<br>{words.plain(info.metric)} {value:.4f}"
            for ratio, (time, value) in zip(ratios, curve.points, strict=True)
        ],
        hoverinfo="text",
    )


def _add_labels(figure: go.Figure, info: PublishedInfo, bounds: tuple[float, float]) -> None:
    room = room_of(figure)
    ends = [curve.points[-1] for curve in info.curves]
    heights = [(value - bounds[0]) / (bounds[1] - bounds[0]) * room for _, value in ends]
    places = spread_out(heights, LABEL_GAP, 6, room - 6)
    for curve, (time, value), height, place in zip(info.curves, ends, heights, places, strict=True):
        figure.add_annotation(
            x=time,
            y=value,
            ax=20,
            ay=height - place,
            text=words.plain(theme.method_label(curve.method)),
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=theme.GREY,
            standoff=7,
            borderpad=1,
            font={"size": 13},
        )
