"""How well every layer's question attention finds the answer, what its choice costs, and which layers are used."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz import theme
from viz.figures import words

CHANCE = 0.10
TOP, MARK_SIZE = 0.56, 13
ORIGINS = {"measured": "measured", "paper": "published, not measured here", "guess": "a guess"}


@dataclass(frozen=True, slots=True)
class LayerPoint:
    """One layer: mean Recall@10 % of answer tokens and mean KL to full prefill (nats), each with its standard error."""

    layer: int
    recall: float
    recall_se: float
    kl: float | None
    kl_se: float | None


@dataclass(frozen=True, slots=True)
class LayerRecallInfo:
    """A model's critical layers, best first, and what is known about all; `points` is empty for a table without a curve."""

    model: str
    layers: tuple[int, ...]
    used: tuple[int, ...]
    origin: str
    created: str
    num_samples: int
    num_layers: int
    points: tuple[LayerPoint, ...]


def layer_recall_info(
    model: str,
    layers: Sequence[int],
    origin: str,
    created: str,
    num_samples: int,
    scores: Iterable[tuple[int, float, float, float | None, float | None]] = (),
    num_layers: int = 0,
    num_used: int = 3,
) -> LayerRecallInfo:
    """Returns what the figure shows of a calibration table.

    Args:
        layers: critical layers, best first; the first `num_used` are marked.
        origin: "measured", "paper" or "guess".
        created: date of the measurement or of the publication, "" where there is none.
        scores: (layer, recall, its standard error, KL, its standard error), KL None where it was not measured.
        num_layers: of the model; what the table itself covers where that is more.
    """
    points = tuple(LayerPoint(*row) for row in sorted(scores, key=lambda row: row[0]))
    covered = max([0, *(layer + 1 for layer in layers), *(point.layer + 1 for point in points)])
    return LayerRecallInfo(model, tuple(layers), tuple(layers[:num_used]), origin, created, num_samples, max(num_layers, covered), points)


def layer_recall_figure(info: LayerRecallInfo | None, reason: str = "No table of critical layers is known for this model.") -> go.Figure:
    """Returns recall above KL over the layers, or the ranks alone where the table has no curve; a titled empty figure for None."""
    if info is None or not info.layers:
        return theme.empty_figure("Critical layers", reason)
    has_kl = any(point.kl is not None for point in info.points)
    height = 460 if has_kl else 320 if info.points else 200
    layout = theme.base_layout(f"Critical layers of {words.plain(info.model)}", height, theme.broken(_subtitle(info)), hovermode="closest")
    layout.xaxis.update(title_text="layer", range=[-0.6, info.num_layers - 0.4], fixedrange=True, anchor="y2" if has_kl else "y")
    figure = go.Figure(layout=layout)
    if not info.points:
        _add_ranks(figure, info)
        return figure
    figure.layout.yaxis.update(
        title_text="recall@10 %", rangemode="tozero", tickformat=".0%", fixedrange=True, domain=[TOP, 1] if has_kl else [0, 1]
    )
    _add_recall(figure, info)
    if has_kl:
        figure.layout.yaxis2 = figure.layout.yaxis.to_plotly_json() | {
            "title": {"text": "KL to full, nats", "font": {"size": 13}, "standoff": 8},
            "domain": [0, TOP - 0.08],
            "tickformat": ".2f",
            "rangemode": "normal",
            "anchor": "x",
        }
        _add_kl(figure, info)
    for rank, layer in enumerate(info.used):
        line = {"color": theme.VERMILLION, "width": 1 if rank else 2.5, "dash": "dot"}
        figure.add_shape(type="line", x0=layer, x1=layer, y0=0, y1=1, yref="paper", line=line, layer="below")
    return figure


def _subtitle(info: LayerRecallInfo) -> str:
    parts = [f"Used, best first: {', '.join(map(str, info.used))}", ORIGINS.get(info.origin, words.plain(info.origin))]
    if info.num_samples:
        parts.append(f"n = {info.num_samples:,}")
    if info.created:
        parts.append(words.plain(info.created))
    return ", ".join(parts) + ("." if info.points else ". No curve.")


def _rank(info: LayerRecallInfo, layer: int) -> int | None:
    return info.layers.index(layer) + 1 if layer in info.layers else None


def _add_recall(figure: go.Figure, info: LayerRecallInfo) -> None:
    figure.add_scatter(
        x=[point.layer for point in info.points],
        y=[round(point.recall, 4) for point in info.points],
        error_y={"type": "data", "array": [round(p.recall_se, 4) for p in info.points], "color": theme.INK, "thickness": 1, "width": 3},
        mode="lines+markers",
        name="recall, ± standard error",
        line={"color": theme.GREEN, "width": 2},
        marker={"symbol": "circle", "size": 6, "color": theme.GREEN},
        hovertext=[_hover(info, point) for point in info.points],
        hoverinfo="text",
    )
    figure.add_scatter(
        x=[-0.6, info.num_layers - 0.4],
        y=[CHANCE] * 2,
        mode="lines",
        name="chance",
        line={"color": theme.GREY, "width": 1, "dash": "dash"},
        hoverinfo="skip",
    )
    _add_marks(figure, info, {point.layer: point.recall for point in info.points}, "y", True)


def _add_kl(figure: go.Figure, info: LayerRecallInfo) -> None:
    known = [point for point in info.points if point.kl is not None]
    figure.add_scatter(
        x=[point.layer for point in known],
        y=[round(point.kl or 0.0, 5) for point in known],
        error_y={"type": "data", "array": [round(p.kl_se or 0.0, 5) for p in known], "color": theme.INK, "thickness": 1, "width": 3},
        mode="lines+markers",
        name="KL, lower is better",
        line={"color": theme.BLUE, "width": 2, "dash": "dot"},
        marker={"symbol": "square", "size": 6, "color": theme.BLUE},
        hovertext=[_hover(info, point) for point in known],
        hoverinfo="text",
        yaxis="y2",
    )
    _add_marks(figure, info, {point.layer: point.kl for point in known if point.kl is not None}, "y2", False)


def _add_marks(figure: go.Figure, info: LayerRecallInfo, heights: dict[int, float], axis: str, in_legend: bool) -> None:
    """Adds a ring around the points of the layers in use."""
    marked = [layer for layer in info.used if layer in heights]
    figure.add_scatter(
        x=marked,
        y=[round(heights[layer], 5) for layer in marked],
        mode="markers",
        name="in use",
        marker={"symbol": "diamond-open", "size": MARK_SIZE, "color": theme.VERMILLION, "line": {"width": 2}},
        hoverinfo="skip",
        showlegend=in_legend,
        yaxis=axis,
    )


def _add_ranks(figure: go.Figure, info: LayerRecallInfo) -> None:
    """Draws the layers by rank on one line: all that a table without a curve says."""
    figure.layout.yaxis.update(visible=False, range=[-1, 1.4], fixedrange=True)
    figure.layout.showlegend = False
    is_used = [layer in info.used for layer in info.layers]
    figure.add_scatter(
        x=list(info.layers),
        y=[0] * len(info.layers),
        mode="markers+text",
        text=[str(rank) for rank in range(1, len(info.layers) + 1)],
        textposition="top center",
        marker={
            "symbol": ["diamond" if used else "circle-open" for used in is_used],
            "size": MARK_SIZE,
            "color": [theme.VERMILLION if used else theme.INK for used in is_used],
        },
        hovertext=[f"<b>layer {layer}</b><br>rank {rank}" for rank, layer in enumerate(info.layers, start=1)],
        hoverinfo="text",
    )


def _hover(info: LayerRecallInfo, point: LayerPoint) -> str:
    lines = [f"<b>layer {point.layer}</b>", f"recall {100 * point.recall:.1f} ± {100 * point.recall_se:.1f} %"]
    if point.kl is not None:
        lines.append(f"KL {point.kl:.4f}" + (f" ± {point.kl_se:.4f}" if point.kl_se is not None else ""))
    rank = _rank(info, point.layer)
    return "<br>".join(lines + ([f"rank {rank} of the critical layers"] if rank else []))
