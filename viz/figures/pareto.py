"""Time to first token against quality: one line a method over its ratios, with intervals and the Pareto front."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import plotly.graph_objects as go

from engine.results import Metric, ResultSet, Row, metric_of
from viz import theme
from viz.figures import words
from viz.figures.labels import even_ticks, log_ticks, room_of, spread_out

HEIGHT, BOTTOM, RIGHT, LABEL_GAP = 590, 64, 70, 17
# Of a name in the letters of a label, for a margin that holds the longest.
LETTER_PX, EDGE_PX = 6.9, 24


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """One method at one ratio.

    Args:
        ttft_lo_s, ttft_hi_s: the median scaled by the ends of the paired speed-up's 95 % interval.
        lo, hi: ends of the quality's 95 % interval, None where the file has none.
    """

    method: str
    ratio: float | None
    n: int
    ttft_s: float
    ttft_lo_s: float
    ttft_hi_s: float
    quality: float
    lo: float | None
    hi: float | None


@dataclass(frozen=True, slots=True)
class ParetoCurve:
    """One method's points, lowest ratio first."""

    method: str
    points: tuple[ParetoPoint, ...]


@dataclass(frozen=True, slots=True)
class ParetoInfo:
    """Curves in reading order; `front` holds the points that no shown point beats in both time and quality, fastest first."""

    metric: Metric
    curves: tuple[ParetoCurve, ...]
    front: tuple[ParetoPoint, ...]


def pareto_info(results: ResultSet, methods: Iterable[str], metric: str) -> ParetoInfo:
    """Returns the curves of the chosen methods that have the metric."""
    curves = []
    for method in theme.method_order(set(methods)):
        points = tuple(point for row in results.of_method(method) if (point := _point(row, metric)) is not None)
        if points:
            curves.append(ParetoCurve(method, points))
    found = metric_of(metric)
    return ParetoInfo(found, tuple(curves), _front([p for curve in curves for p in curve.points], found.low_is_better))


def _point(row: Row, metric: str) -> ParetoPoint | None:
    quality = row.measure(metric)
    if quality is None:
        return None
    time, gain = row.ttft_s.median, row.speedup
    return ParetoPoint(
        row.method,
        row.ratio,
        row.n,
        time,
        time * min(1.0, gain.median / gain.hi) if gain.hi > 0 else time,
        time * max(1.0, gain.median / gain.lo) if gain.lo > 0 else time,
        *quality,
    )


def _front(points: list[ParetoPoint], low_is_better: bool) -> tuple[ParetoPoint, ...]:
    front: list[ParetoPoint] = []
    for point in sorted(points, key=lambda p: (p.ttft_s, p.quality if low_is_better else -p.quality)):
        if not front or (point.quality < front[-1].quality if low_is_better else point.quality > front[-1].quality):
            front.append(point)
    return tuple(front)


def pareto_figure(info: ParetoInfo | None, log_time: bool = False, reason: str = "No result set is chosen.") -> go.Figure:
    """Returns the curves, or a titled empty figure that says why. Better is always up and to the left."""
    title = "Time to first token against quality"
    if info is None or not info.curves:
        return theme.empty_figure(title, reason)
    metric = info.metric
    subtitle = theme.broken("Better is up and to the left. Rings: no method shown is better in both.")
    layout = theme.base_layout(title, HEIGHT, subtitle, showlegend=False)
    names = [theme.method_label(curve.method) for curve in info.curves]
    layout.margin.update(l=round(EDGE_PX + LETTER_PX * max(map(len, names))), b=BOTTOM, r=RIGHT)
    layout.dragmode = "zoom"
    layout.hovermode = "closest"
    values = _range_y(info)
    _set_time_axis(layout.xaxis, info, log_time)
    aside = " (reversed: lower is better)" if metric.low_is_better else " (higher is better)"
    # Its numbers stand on the right: the names are on the left, where the fastest points are.
    layout.yaxis.update(title_text=metric.label + aside, range=values, side="right")
    figure = go.Figure(layout=layout)
    _add_front(figure, info)
    for curve in info.curves:
        _add_curve(figure, curve, metric)
    _add_labels(figure, info, values)
    return figure


def _set_time_axis(axis: go.layout.XAxis, info: ParetoInfo, log_time: bool) -> None:
    """Sets range and ticks; seconds begin at 0, so that a point twice as far right takes twice as long."""
    points = [point for curve in info.curves for point in curve.points]
    low, high = min(p.ttft_lo_s for p in points), max(p.ttft_hi_s for p in points)
    if log_time:
        ticks, span = log_ticks(low * 0.7, high * 1.2), math.log10(high / low) or 1.0
        ends = [math.log10(low) - 0.1 * span, math.log10(high) + 0.06 * span]
    else:
        ticks, ends = even_ticks(0.0, high), [0.0, 1.05 * high]
    title = "time to first token, seconds" + (" (log)" if log_time else "")
    axis.update(type="log" if log_time else "linear", title_text=title, range=ends, tickvals=ticks)


def _range_y(info: ParetoInfo) -> list[float]:
    ends = [end for curve in info.curves for p in curve.points for end in (p.quality, p.lo, p.hi) if end is not None]
    low, high = min(ends), max(ends)
    room = 0.05 * (high - low or abs(high) or 1.0)
    bounds = [low - room, high + room]
    return bounds[::-1] if info.metric.low_is_better else bounds


def _add_front(figure: go.Figure, info: ParetoInfo) -> None:
    figure.add_scatter(
        x=[point.ttft_s for point in info.front],
        y=[point.quality for point in info.front],
        mode="lines+markers",
        name="Pareto front",
        hoverinfo="skip",
        line={"color": theme.GRID, "width": 9},
        marker={"symbol": "circle-open", "size": 19, "color": theme.INK, "line": {"width": 1.5}},
    )


def _add_curve(figure: go.Figure, curve: ParetoCurve, metric: Metric) -> None:
    color, points = theme.method_color(curve.method), curve.points
    figure.add_scatter(
        x=[p.ttft_s for p in points],
        y=[p.quality for p in points],
        mode="lines+markers",
        name=words.plain(theme.method_label(curve.method)),
        line={"color": color, "width": 2, "dash": theme.method_dash(curve.method)},
        marker={
            "symbol": theme.method_symbol(curve.method),
            "size": 17 if curve.method == "full" else 10,
            "color": color,
            "line": {"width": 1, "color": theme.INK},
        },
        error_x=_bars([p.ttft_hi_s - p.ttft_s for p in points], [p.ttft_s - p.ttft_lo_s for p in points], color),
        error_y=_bars(
            [0.0 if p.hi is None else p.hi - p.quality for p in points], [0.0 if p.lo is None else p.quality - p.lo for p in points], color
        ),
        hovertext=[point_words(p, metric) for p in points],
        hoverinfo="text",
    )


def _bars(plus: list[float], minus: list[float], color: str) -> dict[str, object]:
    return {"type": "data", "symmetric": False, "array": plus, "arrayminus": minus, "color": color, "thickness": 1, "width": 3}


def point_words(point: ParetoPoint, metric: Metric) -> str:
    """Returns what a point says when it is pointed at."""
    ratio = "" if point.ratio is None else f", ratio {point.ratio:g}"
    span = "" if point.lo is None else f" [{point.lo:{metric.form}}, {point.hi:{metric.form}}]"
    return (
        f"<b>{words.plain(theme.method_label(point.method))}</b>{ratio}<br>first token after {words.seconds(point.ttft_s)}<br>"
        f"{metric.label} {point.quality:{metric.form}}{span}<br>n = {point.n}"
    )


def _add_labels(figure: go.Figure, info: ParetoInfo, values: list[float]) -> None:
    """Writes the names left of the picture, each tied to its curve's fastest point; a point far to the right has its name below it."""
    axis, room = figure.layout.xaxis, room_of(figure)
    place = math.log10 if axis.type == "log" else float
    begin, span = axis.range[0], axis.range[1] - axis.range[0]
    tips = [curve.points[0] for curve in info.curves]
    near = [tip for tip in tips if place(tip.ttft_s) - begin < 0.6 * span]
    heights = {tip: (tip.quality - values[0]) / (values[1] - values[0]) * room for tip in tips}
    lines = dict(zip(near, spread_out([heights[tip] for tip in near], LABEL_GAP, 6, room - 6), strict=True))
    for tip in tips:
        if tip in lines:
            level = lines[tip] / room * (values[1] - values[0]) + values[0]
            tail = {"ax": begin, "ay": level, "axref": "x", "ayref": "y", "xanchor": "right"}
        else:
            tail = {"ax": 0, "ay": 26}
        figure.add_annotation(
            x=place(tip.ttft_s),
            y=tip.quality,
            **tail,
            text=words.plain(theme.method_label(tip.method)),
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=theme.INK,
            standoff=8,
            borderpad=4,
            font={"size": 13},
        )
