"""The choices of one method for two questions over the same chunks: what only the question changes."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.types import Run
from viz import theme
from viz.figures import words
from viz.figures.bins import Bins, document_bins, document_mask, quoted, where
from viz.figures.chunk_bands import Band, add_chunk_bands, chunk_bands

TITLE = "Tokens recomputed, question A and B"
ROWS = ("only for A", "for both", "only for B")
COLORS = theme.FLIP_COLORS
BANDS_PX, ROW_PX = 70, 44


@dataclass(frozen=True, eq=False, slots=True)
class QuestionFlipInfo:
    """Args:
    groups: bool [3, N], document tokens recomputed only for A, for both, only for B.
    cells: uint8 [3, n], percent of each column's tokens.
    spans: of A and of B, [start, stop) prompt positions that hold the answer.
    """

    method: str
    groups: np.ndarray
    bins: Bins
    cells: np.ndarray
    hover: tuple[str, ...]
    bands: tuple[Band, ...]
    spans: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
    system_len: int
    num_tokens: int

    @property
    def num_by_group(self) -> tuple[int, int, int]:
        """Returns how many tokens are recomputed only for A, for both, only for B."""
        only_a, both, only_b = self.groups.sum(axis=1).tolist()
        return only_a, both, only_b

    @property
    def jaccard(self) -> float | None:
        """Returns tokens in both sets over tokens in either, None for two empty sets."""
        num_either = int(self.groups.sum())
        return self.num_by_group[1] / num_either if num_either else None


def question_flip_info(run_a: Run, run_b: Run, method_name: str) -> QuestionFlipInfo | None:
    """Returns the two choices aligned, or None where they cannot be: another method, other chunks."""
    a, b = run_a.method(method_name), run_b.method(method_name)
    if a is None or b is None or not same_documents(run_a, run_b):
        return None
    mask_a, mask_b = document_mask(run_a, a), document_mask(run_b, b)
    groups = np.array([mask_a & ~mask_b, mask_a & mask_b, mask_b & ~mask_a])
    bins = document_bins(run_a)
    per_token = np.zeros((3, run_a.question_start), dtype=np.int64)
    per_token[:, run_a.system_len :] = groups
    totals = np.array([bins.total(row) for row in per_token])
    return QuestionFlipInfo(
        method=method_name,
        groups=groups,
        bins=bins,
        cells=np.rint(100 * totals / bins.counts).astype(np.uint8),
        hover=_hover(run_a, bins, per_token),
        bands=chunk_bands(run_a),
        spans=(run_a.answer_spans, run_b.answer_spans),
        system_len=run_a.system_len,
        num_tokens=len(run_a.tokens),
    )


def same_documents(run_a: Run, run_b: Run) -> bool:
    """Returns whether two runs are over the same document tokens in the same places, by the same model."""
    places = [(run.system_len, run.question_start, run.provenance.model) for run in (run_a, run_b)]
    documents = [run.token_ids[run.system_len : run.question_start] for run in (run_a, run_b)]
    return places[0] == places[1] and np.array_equal(*documents)


def _hover(run: Run, bins: Bins, per_token: np.ndarray) -> tuple[str, ...]:
    lines = []
    for start, stop in zip(bins.edges[:-1].tolist(), bins.edges[1:].tolist(), strict=True):
        counts = per_token[:, start:stop].sum(axis=1).tolist()
        if stop - start == 1:
            state = next((f"recomputed {row}" for row, num in zip(ROWS, counts, strict=True) if num), "loaded for both")
        else:
            state = ", ".join(f"{num} {row}" for row, num in zip(ROWS, counts, strict=True) if num) or "loaded for both"
        lines.append(f"<b>{quoted(run, start, stop)}</b><br>{where(run, start)}<br>{state}")
    return tuple(lines)


def question_flip_figure(info: QuestionFlipInfo | None, reason: str = "Pick a second question and press Compare.") -> go.Figure:
    """Returns the three strips under the chunks, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    strips_px = ROW_PX * len(ROWS)
    layout = theme.base_layout(
        TITLE, BANDS_PX + strips_px + 150, words.plain(theme.method_label(info.method)), hovermode="x", barmode="overlay", bargap=0
    )
    layout.dragmode = "zoom"
    layout.xaxis.update(title_text="prompt position (tokens)", range=[0, info.num_tokens], showgrid=False, tickformat=",d")
    top = strips_px / (strips_px + BANDS_PX)
    layout.yaxis.update(range=[len(ROWS), 0], domain=[0, top], visible=False, fixedrange=True)
    layout.yaxis2 = {"domain": [top, 1], "range": [1.6, 5], "visible": False, "fixedrange": True}
    layout.uniformtext = {"minsize": 12, "mode": "hide"}
    figure = go.Figure(layout=layout)
    for row in range(len(ROWS)):
        _add_strip(figure, info, row)
    add_chunk_bands(figure, info.bands, info.num_tokens)
    _add_hover(figure, info)
    _add_spans(figure, info)
    return figure


def _add_strip(figure: go.Figure, info: QuestionFlipInfo, row: int) -> None:
    figure.add_heatmap(
        x=info.bins.edges,
        y=[row + 0.46, row + 1],
        z=info.cells[row : row + 1],
        zmin=0,
        zmax=100,
        colorscale=[[0, "rgba(128,128,128,0.18)"], [0.01, COLORS[row]], [1, COLORS[row]]],
        showscale=False,
        hoverinfo="skip",
    )
    text = f"<b>{ROWS[row]}</b>  {info.num_by_group[row]:,} tokens"
    figure.add_annotation(text=text, xref="paper", x=0, y=row + 0.25, xanchor="left", yanchor="middle", showarrow=False, borderpad=0)


def _add_hover(figure: go.Figure, info: QuestionFlipInfo) -> None:
    """An invisible line carries the hover text: once per column instead of once per cell."""
    figure.add_scatter(
        x=info.bins.centres,
        y=np.full(len(info.hover), len(ROWS) * 0.5),
        mode="lines",
        line={"color": theme.CLEAR},
        hovertext=info.hover,
        hoverinfo="text",
        showlegend=False,
        hoverlabel={"bgcolor": "#1F2937", "font": {"color": "#FFFFFF"}},
    )


def _add_spans(figure: go.Figure, info: QuestionFlipInfo) -> None:
    """Frames the places that hold an answer, A's in the upper strips, B's in the lower ones."""
    for spans, (y0, y1) in zip(info.spans, ((0.46, 2), (1.46, 3)), strict=True):
        for start, stop in spans:
            figure.add_shape(type="rect", x0=start, x1=stop, y0=y0, y1=y1, line={"width": 2, "color": theme.GREEN, "dash": "dot"})
    for name, spans in zip("AB", info.spans, strict=True):
        if spans:
            figure.add_scatter(
                x=[(start + stop) / 2 for start, stop in spans],
                y=[0.46 if name == "A" else 3] * len(spans),
                mode="markers",
                name=f"holds the answer to {name}",
                hoverinfo="skip",
                marker={"symbol": "triangle-down" if name == "A" else "triangle-up", "size": 11, "color": theme.GREEN},
                cliponaxis=False,
            )
