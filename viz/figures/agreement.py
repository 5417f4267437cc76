"""Who chose this token: a strip per method over the document tokens, and how many methods agree on each."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.types import Run
from viz import theme
from viz.figures import words
from viz.figures.bins import Bins, document_bins, quoted, selective_masks, where
from viz.figures.chunk_bands import Band, add_chunk_bands, chunk_bands

TITLE = "Who chose this token"
BANDS_PX, COUNT_PX, ROW_PX = 70, 84, 36


@dataclass(frozen=True, eq=False, slots=True)
class AgreementInfo:
    """Args:
    methods: those that recompute some but not all document tokens, in reading order.
    chosen: bool [M, N], document tokens that each of them recomputes.
    left_out: methods that recompute all or none, where nothing was chosen.
    cells: uint8 [M, n], percent of each column's tokens.
    counts: float64 [n], mean number of methods per token of a column.
    hover: n lines of safe text.
    """

    methods: tuple[str, ...]
    chosen: np.ndarray
    left_out: tuple[str, ...]
    bins: Bins
    cells: np.ndarray
    counts: np.ndarray
    hover: tuple[str, ...]
    bands: tuple[Band, ...]
    spans: tuple[tuple[int, int], ...]
    num_tokens: int
    ratio: float


def agreement_info(run: Run) -> AgreementInfo:
    """Returns the choices of all methods of a run, each token once."""
    masks = selective_masks(run)
    methods = tuple(masks)
    chosen = np.array(list(masks.values()), dtype=bool).reshape(len(methods), run.num_doc_tokens)
    bins = document_bins(run)
    per_token = np.zeros((len(methods), run.question_start), dtype=np.int64)
    per_token[:, run.system_len :] = chosen
    totals = [bins.total(row) for row in per_token]
    sizes = bins.counts
    return AgreementInfo(
        methods=methods,
        chosen=chosen,
        left_out=theme.method_order(m.method for m in run.methods if m.method not in masks),
        bins=bins,
        cells=np.array([np.rint(100 * total / sizes) for total in totals], dtype=np.uint8).reshape(len(methods), len(sizes)),
        counts=sum(totals, np.zeros(len(sizes))) / sizes,
        hover=_hover(run, methods, bins, per_token),
        bands=chunk_bands(run),
        spans=run.answer_spans,
        num_tokens=len(run.tokens),
        ratio=run.ratio,
    )


def _hover(run: Run, methods: tuple[str, ...], bins: Bins, per_token: np.ndarray) -> tuple[str, ...]:
    labels = [words.plain(theme.method_label(name)) for name in methods]
    lines = []
    for start, stop in zip(bins.edges[:-1].tolist(), bins.edges[1:].tolist(), strict=True):
        best = start + int(per_token[:, start:stop].sum(axis=0).argmax())
        names = [label for label, picked in zip(labels, per_token[:, best].tolist(), strict=True) if picked]
        listed = "".join(f"<br>• {name}" for name in names)
        place = f"position {best:,}" + (f", the most chosen of {start:,}–{stop - 1:,}" if stop - start > 1 else "")
        chosen = f"chosen by {len(names)} of {len(methods)}{listed}" if names else "chosen by no method"
        lines.append(f"<b>{quoted(run, best, best + 1)}</b><br>{where(run, best)}<br>{place}<br>{chosen}")
    return tuple(lines)


def agreement_figure(info: AgreementInfo | None, reason: str = "No method of the run chooses some of the tokens.") -> go.Figure:
    """Returns count curve and strips, or a titled empty figure that says why."""
    if info is None or not info.methods:
        return theme.empty_figure(TITLE, reason)
    strips_px = ROW_PX * len(info.methods)
    inner_px = BANDS_PX + COUNT_PX + strips_px
    layout = theme.base_layout(TITLE, inner_px + 150, theme.broken(_subtitle(info)), hovermode="x", barmode="overlay", bargap=0)
    layout.dragmode = "zoom"
    layout.xaxis.update(
        title_text="prompt position (tokens)",
        range=[0, info.num_tokens],
        showgrid=False,
        tickformat=",d",
        showspikes=True,
        spikemode="across",
        spikethickness=1,
        spikedash="solid",
        spikecolor=theme.INK,
    )
    top = strips_px / inner_px
    middle = (strips_px + COUNT_PX) / inner_px
    layout.yaxis.update(range=[len(info.methods), 0], domain=[0, top], visible=False, fixedrange=True)
    layout.yaxis3 = layout.xaxis.to_plotly_json() | {
        "domain": [top + 0.012, middle - 0.012],
        "range": [0, 1.3 * len(info.methods)],
        "title": {"text": ""},
        "fixedrange": True,
        "showgrid": True,
        "dtick": -(-len(info.methods) // 3),
        "showspikes": False,
    }
    layout.yaxis2 = {"domain": [middle, 1], "range": [1.6, 5], "visible": False, "fixedrange": True}
    layout.uniformtext = {"minsize": 12, "mode": "hide"}
    figure = go.Figure(layout=layout)
    _add_strips(figure, info)
    _add_counts(figure, info)
    add_chunk_bands(figure, info.bands, info.num_tokens)
    _add_spans(figure, info)
    return figure


def _subtitle(info: AgreementInfo) -> str:
    names = ", ".join(words.plain(theme.method_label(name)) for name in info.left_out)
    return f"at ratio {info.ratio:.2f}" + (f"; left out, they compute all or none: {names}" if names else "")


def _add_strips(figure: go.Figure, info: AgreementInfo) -> None:
    """Draws each method's choices as a strip under its name; the lines between are empty."""
    num = len(info.methods)
    z = np.full((2 * num, info.cells.shape[1]), np.nan, dtype=np.float32)
    z[1::2] = info.cells
    edges = np.stack([np.arange(num), np.arange(num) + 0.5], axis=1).ravel()
    figure.add_heatmap(
        x=info.bins.edges,
        y=np.append(edges, num),
        z=z,
        zmin=0,
        zmax=100,
        colorscale=[[0, "rgba(128,128,128,0.18)"], [0.01, "#F3CF80"], [1, theme.STATE_COLORS["recomputed"]]],
        showscale=False,
        hoverinfo="skip",
        hoverongaps=False,
    )
    # An invisible line carries the hover text: once per column instead of once per cell.
    figure.add_scatter(
        x=info.bins.centres,
        y=np.full(len(info.hover), num * 0.5),
        mode="lines",
        line={"color": theme.CLEAR},
        hovertext=info.hover,
        hoverinfo="text",
        showlegend=False,
        hoverlabel={"bgcolor": "#1F2937", "font": {"color": "#FFFFFF"}},
    )
    for row, name in enumerate(info.methods):
        text = f"<b>{words.plain(theme.method_label(name))}</b>  {words.percent(float(info.chosen[row].mean()))}"
        figure.add_annotation(text=text, xref="paper", x=0, y=row + 0.27, xanchor="left", yanchor="middle", showarrow=False, borderpad=0)


def _add_counts(figure: go.Figure, info: AgreementInfo) -> None:
    figure.add_scatter(
        x=np.repeat(info.bins.edges, 2)[1:-1],
        y=np.repeat(np.round(info.counts, 2), 2),
        yaxis="y3",
        mode="lines",
        line={"width": 0.5, "color": theme.BLUE},
        fill="tozeroy",
        fillcolor=theme.BLUE,
        name="number of methods",
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_annotation(
        text="number of methods", xref="paper", yref="y3 domain", x=0, y=1, xanchor="left", yanchor="top", showarrow=False, borderpad=2
    )


def _add_spans(figure: go.Figure, info: AgreementInfo) -> None:
    for start, stop in info.spans:
        figure.add_vrect(
            x0=start, x1=stop, fillcolor=theme.GREEN, opacity=0.22, line={"width": 1, "color": theme.GREEN, "dash": "dot"}, layer="below"
        )
    if info.spans:
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            name="holds the answer",
            marker={"symbol": "square-open-dot", "size": 12, "color": theme.GREEN},
        )
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        name="recomputed",
        marker={"symbol": "square", "size": 13, "color": theme.STATE_COLORS["recomputed"]},
    )
