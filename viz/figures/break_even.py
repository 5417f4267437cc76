"""When the time to build the caches is paid back: total time over the uses of a context, against full prefill."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.results import ResultSet
from viz import theme
from viz.figures import words
from viz.figures.labels import log_ticks, room_of, spread_out

HEIGHT, BOTTOM, LABEL_GAP, NUM_POINTS = 460, 64, 17, 60
# Labels stand in the margin, whatever the picture's width: the arrow's length, then pixels a character.
ARROW, CHARACTER, LONG, BREAK = 22, 7.4, 18, "<br>"


@dataclass(frozen=True, slots=True)
class CostLine:
    """One method: `build_s` once, then `ttft_s` for every use. `pays_from` is the first use by which it has paid, None for never."""

    method: str
    ratio: float | None
    build_s: float
    ttft_s: float
    pays_from: int | None


@dataclass(frozen=True, slots=True)
class BreakEvenInfo:
    """Lines in reading order against full prefill's time for one use."""

    full_s: float
    lines: tuple[CostLine, ...]
    ratio: float | None


def break_even_info(results: ResultSet, methods: Iterable[str], ratio: float | None) -> BreakEvenInfo | None:
    """Returns the lines of the chosen methods at a ratio, None without full prefill or without measured costs."""
    full = results.row("full")
    if full is None or not results.costs:
        return None
    lines = []
    for method in theme.method_order(set(methods) - {"full"}):
        row = results.row(method, ratio)
        cost = results.cost(row.context or results.context) if row else None
        if row and cost:
            build, time = cost.build_s.median, row.ttft_s.median
            lines.append(CostLine(method, row.ratio, build, time, _pays_from(build, full.ttft_s.median, time)))
    return BreakEvenInfo(full.ttft_s.median, tuple(lines), ratio)


def _pays_from(build_s: float, full_s: float, own_s: float) -> int | None:
    saved = full_s - own_s
    return max(1, math.ceil(build_s / saved - 1e-9)) if saved > 0 else None


def break_even_words(info: BreakEvenInfo | None) -> str:
    """Returns in words when each method pays, and which never do."""
    if info is None or not info.lines:
        return ""
    uses = sorted({line.pays_from for line in info.lines if line.pays_from is not None})
    parts = [f"Pays from use {use:,}: {_names(info, use)}." for use in uses]
    never = _names(info, None)
    return " ".join([*parts, f"Never: {never}, as slow as full prefill or slower."] if never else parts)


def _names(info: BreakEvenInfo, pays_from: int | None) -> str:
    return ", ".join(theme.method_label(line.method) for line in info.lines if line.pays_from == pays_from)


def break_even_figure(info: BreakEvenInfo | None, reason: str = "This result set holds no cost of building caches.") -> go.Figure:
    """Returns the lines on two logarithmic axes, or a titled empty figure that says why."""
    title = "When do the caches pay?"
    if info is None or not info.lines:
        return theme.empty_figure(title, reason)
    where = "" if info.ratio is None else f" at ratio {info.ratio:g}"
    subtitle = theme.broken(f"Build once, then reuse{where}. ○ marks the use from which it pays.")
    layout = theme.base_layout(title, HEIGHT, subtitle, showlegend=False)
    last = max([30, *(4 * line.pays_from for line in info.lines if line.pays_from)])
    labels = [_label(line) for line in (_full_line(info), *info.lines)]
    longest = max(len(part) for label in labels for part in label.split(BREAK))
    layout.margin.update(b=BOTTOM, r=round(ARROW + CHARACTER * longest) + 8, l=62)
    layout.dragmode = "zoom"
    uses = np.unique(np.round(np.geomspace(1, last, NUM_POINTS)))
    span = math.log10(last)
    totals = [
        total for line in (*info.lines, _full_line(info)) for total in (line.build_s + line.ttft_s, line.build_s + last * line.ttft_s)
    ]
    low, high = math.log10(min(totals)) - 0.08, math.log10(max(totals)) + 0.08
    layout.xaxis.update(
        type="log", title_text="times the context is used (log)", range=[-0.02 * span, 1.02 * span], tickvals=log_ticks(1, last)
    )
    layout.yaxis.update(
        type="log", title_text="total time to first tokens, s (log)", range=[low, high], tickvals=log_ticks(10**low, 10**high)
    )
    figure = go.Figure(layout=layout)
    _add_line(figure, _full_line(info), uses)
    for line in info.lines:
        _add_line(figure, line, uses)
    _add_crossings(figure, info)
    _add_labels(figure, info, float(last), (low, high))
    return figure


def _label(line: CostLine) -> str:
    """Returns how a line is called beside it: a long name of a method with an addition on two lines."""
    label = words.plain(theme.method_label(line.method))
    return label.replace(" + ", f"{BREAK}+ ") if len(label) > LONG else label


def _full_line(info: BreakEvenInfo) -> CostLine:
    return CostLine("full", None, 0.0, info.full_s, None)


def _add_line(figure: go.Figure, line: CostLine, uses: np.ndarray) -> None:
    is_full = line.method == "full"
    label = words.plain(theme.method_label(line.method))
    pays = "" if is_full else f"<br>pays from use {line.pays_from:,}" if line.pays_from else "<br>never pays"
    built = "" if is_full else f"<br>{words.seconds(line.build_s)} to build the caches"
    figure.add_scatter(
        x=uses,
        y=np.round(line.build_s + uses * line.ttft_s, 4),
        mode="lines",
        name=label,
        line={"color": theme.method_color(line.method), "width": 5 if is_full else 2, "dash": theme.method_dash(line.method)},
        hovertext=[f"<b>{label}</b>, {use:,.0f} uses: {words.seconds(line.build_s + use * line.ttft_s)}{built}{pays}" for use in uses],
        hoverinfo="text",
    )


def _add_crossings(figure: go.Figure, info: BreakEvenInfo) -> None:
    lines = [line for line in info.lines if line.pays_from is not None]
    figure.add_scatter(
        x=[line.pays_from for line in lines],
        y=[line.build_s + (line.pays_from or 0) * line.ttft_s for line in lines],
        mode="markers",
        name="pays from here",
        hovertext=[f"<b>{words.plain(theme.method_label(line.method))}</b> pays from use {line.pays_from:,}" for line in lines],
        hoverinfo="text",
        marker={"symbol": "circle-open", "size": 13, "color": theme.INK, "line": {"width": 2}},
    )


def _add_labels(figure: go.Figure, info: BreakEvenInfo, last: float, values: tuple[float, float]) -> None:
    room = room_of(figure)
    lines = [_full_line(info), *info.lines]
    ends = [math.log10(line.build_s + last * line.ttft_s) for line in lines]
    heights = [(end - values[0]) / (values[1] - values[0]) * room for end in ends]
    labels = [_label(line) for line in lines]
    num_broken = sum(BREAK in label for label in labels)
    gap = LABEL_GAP * (1, 1.5, 2)[min(num_broken, 2)]
    for label, end, height, place in zip(labels, ends, heights, spread_out(heights, gap, 8, room - 8), strict=True):
        figure.add_annotation(
            x=math.log10(last),
            y=end,
            ax=ARROW,
            ay=height - place,
            text=label,
            align="left",
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=theme.INK,
            standoff=2,
            borderpad=1,
            font={"size": 13},
        )
