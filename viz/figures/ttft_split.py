"""Time to first token of each method, split by what the device was doing, on one axis."""

from dataclasses import asdict, dataclass

import plotly.graph_objects as go

from engine.types import Run
from viz import theme
from viz.figures import words
from viz.figures.marks import add_moments, hatched

PARTS = ("probe", "select", "load_wait", "recompute", "head")


@dataclass(frozen=True, slots=True)
class TtftRow:
    """One bar.

    Args:
        parts_s: seconds by part, in the order of PARTS.
        repeats_s: every measured time to first token.
        speedup: full prefill's time over this one, None without a full prefill or for itself.
        separable: False where the spread overlaps that of full prefill.
        server_s: what a server took by its own clock, None where none did or it was not told.
    """

    method: str
    parts_s: tuple[float, ...]
    ttft_s: float
    repeats_s: tuple[float, ...]
    speedup: float | None
    separable: bool
    server_s: float | None = None


@dataclass(frozen=True, slots=True)
class TtftSplitInfo:
    """Bars from top to bottom, the number of repeats, and the server that was measured at its client, if any."""

    rows: tuple[TtftRow, ...]
    num_repeats: int
    server: str | None = None


def ttft_split_info(run: Run) -> TtftSplitInfo:
    """Returns one row per method of the run, in its order."""
    full = run.method("full")
    rows = []
    for method in run.methods:
        parts = asdict(method.parts_s)
        other = full is not None and method is not full and method.ttft_s > 0
        rows.append(
            TtftRow(
                method=method.method,
                parts_s=tuple(parts[part] for part in PARTS),
                ttft_s=method.ttft_s,
                repeats_s=method.ttft_repeats_s,
                speedup=full.ttft_s / method.ttft_s if other else None,
                separable=not other or not _overlap(method.ttft_repeats_s, full.ttft_repeats_s),
                server_s=method.server_ttft_s,
            )
        )
    num = max((len(row.repeats_s) for row in rows), default=0)
    return TtftSplitInfo(rows=tuple(rows), num_repeats=num, server=run.provenance.served_by)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return bool(a) and bool(b) and min(a) <= max(b) and min(b) <= max(a)


def speed_words(row: TtftRow) -> str:
    """Returns how a row compares with full prefill: '2.8× faster', '' where there is nothing to compare with."""
    if row.speedup is None:
        return ""
    if not row.separable:
        return "no clear difference"
    factor = row.speedup if row.speedup >= 1 else 1 / row.speedup
    return f"{words.times(factor)} {'faster' if row.speedup >= 1 else 'slower'}"


def bar_text(row: TtftRow) -> str:
    """Returns the label of a bar: '0.82 s, 2.8× faster'."""
    return ", ".join(part for part in (words.seconds(row.ttft_s), speed_words(row)) if part)


def ttft_split_figure(info: TtftSplitInfo | None, reason: str = "No method has run yet.") -> go.Figure:
    """Returns the bars, or a titled empty figure that says why."""
    if info is None or not info.rows:
        return theme.empty_figure("Time to first token", reason)
    rows = info.rows
    height = 150 + (62 if len(rows) <= 4 else 48) * len(rows)
    layout = theme.base_layout(f"Time to first token ({_repeats(info)})", height, _where(info), barmode="stack", bargap=0.62)
    layout.margin.l = 14
    longest = max(max((*row.repeats_s, row.ttft_s, sum(row.parts_s))) for row in rows)
    layout.xaxis.update(title_text="seconds", range=[0, longest * 1.06], fixedrange=True)
    layout.yaxis.update(visible=False, range=[len(rows) - 0.45, -0.75], fixedrange=True)
    layout.legend.traceorder = "normal"
    figure = go.Figure(layout=layout)
    y = list(range(len(rows)))
    for i, part in enumerate(PARTS):
        hover = [
            f"{words.plain(theme.method_label(row.method))}<br>{theme.STAGE_LABELS[part]}: {words.seconds(row.parts_s[i])}" for row in rows
        ]
        figure.add_bar(
            x=[row.parts_s[i] for row in rows],
            y=y,
            width=0.38,
            orientation="h",
            name=theme.STAGE_LABELS[part],
            hovertext=hover,
            hoverinfo="text",
            marker=hatched(theme.STAGE_COLORS[part], theme.STAGE_HATCH[part], {"width": 0}),
        )
    _add_spread(figure, rows)
    inside = [(row.server_s, i) for i, row in enumerate(rows) if row.server_s is not None]
    said = "first token after {} by the server's own clock"
    add_moments(figure, inside, "inside the server", said, {"symbol": "diamond", "size": 11})
    for i, row in enumerate(rows):
        figure.add_annotation(
            text=f"<b>{words.plain(theme.method_label(row.method))}</b>  {bar_text(row)}",
            x=0,
            y=i - 0.23,
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"size": 13},
            borderpad=0,
        )
    return figure


def _repeats(info: TtftSplitInfo) -> str:
    return "one measurement" if info.num_repeats == 1 else f"median of {info.num_repeats}"


def _where(info: TtftSplitInfo) -> str:
    """Returns where a server's times were taken, in lines; '' for the built-in engine's."""
    said = f"at the client of {info.server}; diamonds: inside it; “first token” holds queue, sampling and the way"
    return theme.broken(said) if info.server else ""


def _add_spread(figure: go.Figure, rows: tuple[TtftRow, ...]) -> None:
    """Draws lowest and highest as error bars and every repeat as an open circle."""
    many = [(i, row) for i, row in enumerate(rows) if len(row.repeats_s) > 1]
    if not many:
        return
    figure.add_scatter(
        x=[row.ttft_s for _, row in many],
        y=[i for i, _ in many],
        mode="markers",
        showlegend=False,
        hoverinfo="skip",
        marker={"symbol": "line-ns", "size": 14, "line": {"width": 2, "color": theme.INK}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(row.repeats_s) - row.ttft_s for _, row in many],
            "arrayminus": [row.ttft_s - min(row.repeats_s) for _, row in many],
            "color": theme.INK,
            "thickness": 2,
            "width": 6,
        },
    )
    dots = [(value, i) for i, row in many for value in row.repeats_s]
    add_moments(figure, dots, "each repeat", "{}", {"symbol": "circle-open", "size": 8, "line": {"width": 1.5}})
