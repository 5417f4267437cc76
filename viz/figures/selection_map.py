"""The token-selection map: which tokens are recomputed, over prompt position and layer.

A method picks one set of tokens for all layers, so recomputed tokens are columns. K and V of layer 0 come from
the embeddings and are exact for every token. Some methods run all tokens through the first layers to find their set; those
layers are drawn as computed, and K and V of the layer behind them as exact.
"""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.types import MethodRun, Run
from viz import theme
from viz.figures import words
from viz.figures.bins import Bins, anchor_positions, prompt_bins, quoted, rank_by_position, recomputed_mask, where
from viz.figures.chunk_bands import Band, add_chunk_bands, chunk_bands
from viz.figures.layers import Stretch, exact_layers, layer_words, stretches, whole_layers, wider_layers

# Cell values: 0..100 is the share of a column's tokens that was recomputed, the rest are states.
SYSTEM, QUESTION, EXACT = 120, 140, 160


@dataclass(frozen=True, eq=False, slots=True)
class SelectionMapInfo:
    """Args:
    cells: uint8 [L, n], see the cell values above; one column per bin.
    hover: n lines of safe text.
    chosen: float64, centres of the columns with a recomputed document token.
    anchors: int64, positions that stood in for the context in the probe.
    layer_note: which layers ran more rows than the set, '' where none did.
    """

    method: str
    ratio: float
    bins: Bins
    cells: np.ndarray
    hover: tuple[str, ...]
    chosen: np.ndarray
    anchors: np.ndarray
    critical_layers: tuple[int, ...]
    layer_note: str
    bands: tuple[Band, ...]
    num_recomputed: int
    num_doc_tokens: int


def selection_map_info(run: Run, method_name: str) -> SelectionMapInfo | None:
    """Returns what the map shows for one method, or None where the run has no such method."""
    method = run.method(method_name)
    if method is None:
        return None
    bins, mask = prompt_bins(run), recomputed_mask(run, method)
    doc = slice(run.system_len, run.question_start)
    doc_mask = np.zeros_like(mask)
    doc_mask[doc] = mask[doc]
    anchors = anchor_positions(method)
    return SelectionMapInfo(
        method=method_name,
        ratio=run.ratio,
        bins=bins,
        cells=_cells(run, method, bins, mask),
        hover=_hover(run, method, bins, mask, set(anchors.tolist())),
        chosen=bins.centres[bins.total(doc_mask.astype(np.int64)) > 0],
        anchors=anchors,
        critical_layers=method.critical_layers,
        layer_note=_layer_note(run, method),
        bands=chunk_bands(run),
        num_recomputed=int(doc_mask.sum()),
        num_doc_tokens=run.num_doc_tokens,
    )


def _cells(run: Run, method: MethodRun, bins: Bins, mask: np.ndarray) -> np.ndarray:
    column = np.rint(100 * bins.total(mask.astype(np.int64)) / bins.counts)
    starts = bins.edges[:-1]
    column[starts >= run.question_start] = QUESTION
    column[(starts < run.system_len) & (column == 0)] = SYSTEM
    cells = np.repeat(column[None].astype(np.uint8), run.num_layers, axis=0)
    cells[: exact_layers(run, method)] = EXACT
    for layer in whole_layers(run, method):
        cells[layer] = np.where(starts >= run.question_start, QUESTION, 100)
    return cells


def _layer_note(run: Run, method: MethodRun) -> str:
    whole, wider = whole_layers(run, method), wider_layers(run, method)
    notes = [f"{layer_words(whole)} ran all {len(run.tokens):,} tokens"] if whole else []
    if wider and method.layer_rows is not None:
        most = int(method.layer_rows[list(wider)].max())
        notes.append(f"{layer_words(wider)} ran up to {most:,} (which ones is not recorded)")
    return ", ".join(notes)


def _hover(run: Run, method: MethodRun, bins: Bins, mask: np.ndarray, anchors: set[int]) -> tuple[str, ...]:
    ranks, num_exact = rank_by_position(run, method), exact_layers(run, method)
    done = bins.total(mask.astype(np.int64))
    lines = []
    for start, stop, num_done in zip(bins.edges[:-1].tolist(), bins.edges[1:].tolist(), done.tolist(), strict=True):
        place = f"position {start:,}" if stop - start == 1 else f"positions {start:,}–{stop - 1:,}"
        state = _state(run, start, stop - start, num_done, num_exact)
        if ranks is not None and run.system_len <= start < run.question_start:
            state += f"<br>rank {ranks[start:stop].min():,} of {run.num_doc_tokens:,}"
        if anchors and any(position in anchors for position in range(start, stop)):
            state += "<br>◆ anchor"
        lines.append(f"<b>{quoted(run, start, stop)}</b><br>{where(run, start)}<br>{place}<br>{state}")
    return tuple(lines)


def _state(run: Run, start: int, num_tokens: int, num_done: int, num_exact: int) -> str:
    if start >= run.question_start:
        return "question: always computed"
    if start < run.system_len and not num_done:
        return "system prompt: cached, exact"
    rest = f"layers {num_exact}–{run.num_layers - 1}"
    if num_tokens > 1:
        return f"{num_done} of {num_tokens} tokens recomputed in {rest}"
    return f"recomputed in {rest}" if num_done else f"loaded in {rest}"


def selection_map_figure(info: SelectionMapInfo | None, reason: str = "This method is not in the run.") -> go.Figure:
    """Returns the map, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure("Tokens recomputed, by layer", reason)
    layout = theme.base_layout(
        "Tokens recomputed, by layer", 560, theme.broken(_subtitle(info)), hovermode="x", bargap=0, barmode="overlay"
    )
    layout.dragmode = "zoom"
    layout.xaxis.update(
        title_text="prompt position (tokens)",
        range=[0, int(info.bins.edges[-1])],
        showgrid=False,
        tickformat=",d",
        showspikes=True,
        spikemode="across",
        spikethickness=1,
        spikedash="solid",
        spikecolor=theme.INK,
    )
    num_layers = len(info.cells)
    layout.yaxis.update(
        title_text="layer", range=[num_layers - 0.5, -0.5], domain=[0, 0.745], showgrid=False, zeroline=False, fixedrange=True, nticks=8
    )
    layout.yaxis2 = {"domain": [0.755, 1], "range": [0, 5], "visible": False, "fixedrange": True}
    layout.uniformtext = {"minsize": 12, "mode": "hide"}
    figure = go.Figure(layout=layout)
    _add_cells(figure, info)
    add_chunk_bands(figure, info.bands, int(info.bins.edges[-1]))
    _add_marks(figure, info)
    _add_legend(figure, info)
    for stretch in stretches(info.critical_layers):
        _add_outline(figure, stretch)
    if info.critical_layers:
        _add_layer_label(figure, info)
    return figure


def _subtitle(info: SelectionMapInfo) -> str:
    binned = f"binned by {info.bins.step}: share of tokens recomputed" if info.bins.step > 1 else "one column per token"
    notes = "; ".join(filter(None, [binned, info.layer_note]))
    return f"{words.plain(theme.method_label(info.method))}: {notes}"


def _add_cells(figure: go.Figure, info: SelectionMapInfo) -> None:
    colors, top = theme.STATE_COLORS, float(EXACT)
    scale = [
        [0, colors["loaded"]],
        [50 / top, "#B59A7A"],
        [100 / top, colors["recomputed"]],
        [110 / top, colors["recomputed"]],
        [110 / top, colors["system"]],
        [130 / top, colors["system"]],
        [130 / top, colors["question"]],
        [150 / top, colors["question"]],
        [150 / top, colors["exact"]],
        [1, colors["exact"]],
    ]
    figure.add_heatmap(
        x=info.bins.edges,
        y=np.arange(len(info.cells)),
        z=info.cells,
        zmin=0,
        zmax=EXACT,
        colorscale=scale,
        showscale=False,
        hoverinfo="skip",
    )
    # An invisible line carries the hover text: once per column instead of once per cell.
    figure.add_scatter(
        x=info.bins.centres,
        y=np.full(len(info.hover), len(info.cells) * 0.5),
        mode="lines",
        line={"color": theme.CLEAR},
        hovertext=info.hover,
        hoverinfo="text",
        showlegend=False,
        hoverlabel={"bgcolor": "#1F2937", "font": {"color": "#FFFFFF"}},
    )


def _add_marks(figure: go.Figure, info: SelectionMapInfo) -> None:
    """Repeats the two selections as shapes: ticks over recomputed columns, diamonds over anchors."""
    figure.add_scatter(
        x=info.chosen,
        y=np.full(len(info.chosen), 0.5),
        yaxis="y2",
        mode="markers",
        hoverinfo="skip",
        showlegend=False,
        marker={"symbol": "line-ns", "size": 11, "line": {"width": 1, "color": theme.ORANGE}},
    )
    figure.add_scatter(
        x=info.anchors + 0.5,
        y=np.full(len(info.anchors), 1.3),
        yaxis="y2",
        mode="markers",
        hoverinfo="skip",
        showlegend=False,
        marker={"symbol": "diamond", "size": 7, "color": theme.VERMILLION},
    )


def _add_legend(figure: go.Figure, info: SelectionMapInfo) -> None:
    for state in ("recomputed", "loaded", "exact", "system", "question"):
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=theme.STATE_LABELS[state],
            marker={"symbol": "square", "size": 13, "color": theme.STATE_COLORS[state]},
        )
    if len(info.anchors):
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=f"anchor ({len(info.anchors):,})",
            marker={"symbol": "diamond", "size": 9, "color": theme.VERMILLION},
        )


def _add_outline(figure: go.Figure, layers: Stretch) -> None:
    for width, color in ((3, "#FFFFFF"), (1.5, "#111111")):
        place = {"x0": 0, "x1": 1, "y0": layers.first - 0.5, "y1": layers.last + 0.5}
        figure.add_shape(type="rect", xref="paper", **place, line={"width": width, "color": color})


def _add_layer_label(figure: go.Figure, info: SelectionMapInfo) -> None:
    """Says over the topmost outline, or in it where there is no room above, which layers the scores are read at."""
    first = min(info.critical_layers)
    name = "critical layer" if len(info.critical_layers) == 1 else "layers"
    listed = layer_words(info.critical_layers).partition(" ")[2]
    figure.add_annotation(
        text=f"{name} {listed}: scores are read here",
        xref="paper",
        x=1,
        y=first - 0.5,
        yanchor="bottom" if first > 1 else "top",
        xanchor="right",
        showarrow=False,
        bgcolor="#FFFFFF",
        borderpad=3,
        bordercolor="#111111",
        font={"color": "#111111"},
    )
