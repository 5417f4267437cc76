"""What disk and device did, layer by layer, for every method on one clock."""

from dataclasses import dataclass

import plotly.graph_objects as go

from engine.types import Run, Span
from viz import theme
from viz.figures import words
from viz.figures.absent import LAYERS, not_given
from viz.figures.marks import add_moments, hatched

LANES = ("disk", "copy", "device")
SHOWN = ("probe", "select", "load", "load_wait", "recompute", "correct", "head")
LINE_PX, EDGE = 21, "rgba(0,0,0,0.45)"
NO_TIMELINE = "No timeline was recorded."


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane of one method, with the spans drawn on it and the time of the first token."""

    method: str
    lane: str
    spans: tuple[Span, ...]
    ttft_s: float


@dataclass(frozen=True, slots=True)
class TimelineInfo:
    """Lanes from top to bottom, the end of the clock in seconds, and what is to be said of them."""

    rows: tuple[LaneRow, ...]
    end_s: float
    note: str = ""

    @property
    def heights(self) -> tuple[int, ...]:
        """Returns the line of each lane; the lines between them hold the names of the methods."""
        places, line = [], 0
        for i, row in enumerate(self.rows):
            line += 2 if i == 0 or self.rows[i - 1].method != row.method else 1
            places.append(line)
        return tuple(places)


def timeline_info(run: Run) -> TimelineInfo:
    """Returns the lanes up to the first token; decoding is left out."""
    rows = []
    for method in run.methods:
        spans = [span for span in method.spans if span.stage in SHOWN]
        for lane in LANES:
            own = tuple(span for span in spans if span.lane == lane)
            if own:
                rows.append(LaneRow(method.method, lane, own, method.ttft_s))
    end = max((span.end_s for row in rows for span in row.spans), default=0.0)
    said = not_given(run, LAYERS)
    return TimelineInfo(rows=tuple(rows), end_s=end, note=f"{said} What it told is set before the first token." if said else "")


def timeline_figure(info: TimelineInfo | None, reason: str = NO_TIMELINE) -> go.Figure:
    """Returns the lanes, or a titled empty figure that says why."""
    if info is None or not info.rows:
        return theme.empty_figure("Timeline up to the first token", reason)
    rows, places = info.rows, info.heights
    note = theme.broken(info.note) if info.note else ""
    layout = theme.base_layout("Timeline up to the first token", 170 + LINE_PX * (places[-1] + 1), note, barmode="overlay")
    layout.xaxis.update(title_text="seconds since the request", range=[0, info.end_s * 1.03], fixedrange=False)
    layout.yaxis.update(
        range=[places[-1] + 0.8, 0.3], fixedrange=True, showgrid=False, zeroline=False, tickvals=places, ticktext=[row.lane for row in rows]
    )
    layout.dragmode = "zoom"
    layout.legend.traceorder = "normal"
    figure = go.Figure(layout=layout)
    for stage in SHOWN:
        _add_stage(figure, info, stage)
    for row, place in zip(rows, places, strict=True):
        if row is next(other for other in rows if other.method == row.method):
            _add_name(figure, row.method, place - 1)
    first = [(row.ttft_s, place) for row, place in zip(rows, places, strict=True) if row.lane == "device"]
    add_moments(figure, first, "first token", "first token after {} (median)", {"symbol": "star", "size": 12})
    return figure


def _add_name(figure: go.Figure, method: str, place: int) -> None:
    text = f"<b>{words.plain(theme.method_label(method))}</b>"
    figure.add_annotation(text=text, xref="paper", x=0, y=place, xanchor="left", yanchor="middle", showarrow=False, borderpad=0)


def _add_stage(figure: go.Figure, info: TimelineInfo, stage: str) -> None:
    lanes = zip(info.rows, info.heights, strict=True)
    drawn = [(place, row, span) for row, place in lanes for span in row.spans if span.stage == stage]
    if not drawn:
        return
    figure.add_bar(
        x=[span.end_s - span.start_s for _, _, span in drawn],
        base=[span.start_s for _, _, span in drawn],
        y=[place for place, _, _ in drawn],
        width=0.72,
        orientation="h",
        name="head" if stage == "head" else theme.STAGE_LABELS[stage],
        hovertext=[_hover(row, span) for _, row, span in drawn],
        hoverinfo="text",
        # Edges tell layers apart; a read is as thin as an edge and would be nothing but one.
        marker=hatched(theme.STAGE_COLORS[stage], theme.STAGE_HATCH[stage], {"width": 0.5 * (stage == "recompute"), "color": EDGE}),
    )


def _hover(row: LaneRow, span: Span) -> str:
    layer = f", layer {span.layer}" if span.layer >= 0 else ""
    amount = f"<br>{words.size(span.size_bytes)}" if span.size_bytes else ""
    return (
        f"<b>{words.plain(theme.method_label(row.method))}</b>: {theme.STAGE_LABELS[span.stage]}{layer}<br>"
        f"{words.seconds(span.start_s)} to {words.seconds(span.end_s)} ({words.seconds(span.end_s - span.start_s)}){amount}"
    )
