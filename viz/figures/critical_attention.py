"""The score of each document token, mostly attention of the question at critical layers, and where the cut falls."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.types import MethodRun, Run
from viz import theme
from viz.figures import words
from viz.figures.bins import Bins, document_bins, quoted, rank_by_position, recomputed_mask, where
from viz.figures.layers import layer_words

# Room above the highest score for the word it belongs to, as a share of the axis.
NUM_LABELS, TOP_ROOM = 4, 0.24
TITLE = "Score of each document token"


@dataclass(frozen=True, slots=True)
class TopToken:
    """A labelled peak."""

    position: int
    score: float
    text: str


@dataclass(frozen=True, eq=False, slots=True)
class CriticalAttentionInfo:
    """Args:
    layers: where the question's attention was read; () for scores that do not look at the question.
    scores: float64 [n], highest score of each column.
    chosen: bool [n], columns with a recomputed token.
    threshold: score of the last chosen token, None where nothing was chosen.
    num_tokens: end of the position axis.
    """

    method: str
    layers: tuple[int, ...]
    bins: Bins
    scores: np.ndarray
    chosen: np.ndarray
    threshold: float | None
    num_chosen: int
    top: tuple[TopToken, ...]
    spans: tuple[tuple[int, int], ...]
    hover: tuple[str, ...]
    num_tokens: int


def critical_attention_info(run: Run, method_name: str) -> CriticalAttentionInfo | None:
    """Returns what the figure shows, or None where the method has no scores."""
    method = run.method(method_name)
    if method is None or method.scores is None or run.num_doc_tokens == 0:
        return None
    bins, mask = document_bins(run), recomputed_mask(run, method)
    offset = run.system_len
    per_token = np.zeros(run.question_start)
    per_token[offset:] = np.nan_to_num(method.scores.astype(np.float64), nan=0.0)
    mask = mask[: run.question_start]
    chosen_scores = per_token[offset:][mask[offset:]]
    return CriticalAttentionInfo(
        method=method_name,
        layers=method.critical_layers,
        bins=bins,
        scores=bins.highest(per_token),
        chosen=bins.highest(mask.astype(np.uint8)) > 0,
        threshold=float(chosen_scores.min()) if len(chosen_scores) else None,
        num_chosen=len(chosen_scores),
        top=_spread_top(run, per_token),
        spans=run.answer_spans,
        hover=_hover(run, method, bins, per_token),
        num_tokens=len(run.tokens),
    )


def _spread_top(run: Run, per_token: np.ndarray) -> tuple[TopToken, ...]:
    """Returns the highest tokens that are at least a fifth of the prompt apart, so that labels do not collide."""
    found: list[TopToken] = []
    for position in np.argsort(-per_token, kind="stable")[:400].tolist():
        if all(abs(position - token.position) > run.num_doc_tokens / 5 for token in found):
            text = words.shorten(run.tokens[position], 12) or "␣"
            found.append(TopToken(position, float(per_token[position]), text))
        if len(found) == NUM_LABELS:
            break
    return tuple(found)


def _hover(run: Run, method: MethodRun, bins: Bins, per_token: np.ndarray) -> tuple[str, ...]:
    ranks = rank_by_position(run, method)
    lines = []
    for start, stop in zip(bins.edges[:-1].tolist(), bins.edges[1:].tolist(), strict=True):
        best = start + int(per_token[start:stop].argmax())
        rank = f", rank {ranks[best]:,} of {run.num_doc_tokens:,}" if ranks is not None else ""
        lines.append(
            f"<b>{quoted(run, best, best + 1)}</b><br>{where(run, best)}<br>position {best:,}<br>score {per_token[best]:.2e}{rank}"
        )
    return tuple(lines)


def no_scores_reason(method: MethodRun, num_doc_tokens: int) -> str:
    """Returns why a method has no scores, in a sentence that is safe to draw."""
    name = words.plain(theme.method_label(method.method))
    if method.ranking is not None:
        return f"{name} has no scores: it does not look at the question. The map shows what it picks."
    if method.method == "full" or method.num_cache_hits < num_doc_tokens:
        return f"{name} has no scores: it computes every token."
    return f"{name} has no scores: it recomputes no document token."


def critical_attention_figure(info: CriticalAttentionInfo | None, reason: str = "This method reads no attention scores.") -> go.Figure:
    """Returns the figure, or a titled empty one that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    layout = theme.base_layout(TITLE, 340, theme.broken(_subtitle(info)), hovermode="x")
    layout.dragmode = "zoom"
    layout.xaxis.update(title_text="prompt position (tokens)", range=[0, info.num_tokens], showgrid=False, tickformat=",d")
    low, high = _log_range(info)
    layout.yaxis.update(
        type="log", title_text="score (log)", range=[low, high + TOP_ROOM * (high - low)], fixedrange=True, exponentformat="power", dtick=1
    )
    figure = go.Figure(layout=layout)
    _add_spans(figure, info)
    _add_areas(figure, info, 10.0**low)
    _add_threshold(figure, info)
    _add_top(figure, info)
    return figure


def _subtitle(info: CriticalAttentionInfo) -> str:
    name = words.plain(theme.method_label(info.method))
    source = f"attention of the question at {layer_words(info.layers)}" if info.layers else "scores that do not look at the question"
    cut = "no token chosen" if info.threshold is None else f"threshold {info.threshold:.1e}, the score of the last chosen token"
    return f"{name}: {source}; {cut}"


def _log_range(info: CriticalAttentionInfo) -> tuple[float, float]:
    positive = info.scores[info.scores > 0]
    if not len(positive):
        return -6.0, 0.0
    high = float(np.log10(positive.max()))
    return max(float(np.log10(np.quantile(positive, 0.02))), high - 6) - 0.1, high


def _add_areas(figure: go.Figure, info: CriticalAttentionInfo, floor: float) -> None:
    x = np.repeat(info.bins.edges, 2)[1:-1]
    shown = np.maximum(info.scores, floor)
    picked = np.where(info.chosen, shown, floor)
    figure.add_scatter(
        x=x,
        y=np.repeat(picked, 2),
        mode="lines",
        line={"width": 0.5, "color": theme.ORANGE},
        fill="tozeroy",
        fillcolor=theme.ORANGE,
        name=f"recomputed ({info.num_chosen:,})",
        hoverinfo="skip",
    )
    rest = np.where(info.chosen, floor, shown)
    figure.add_scatter(
        x=x,
        y=np.repeat(rest, 2),
        mode="lines",
        line={"width": 0.5, "color": theme.BLUE},
        fill="tozeroy",
        fillcolor=theme.BLUE,
        name="loaded",
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=info.bins.centres,
        y=shown,
        mode="lines",
        line={"color": theme.CLEAR},
        hovertext=info.hover,
        hoverinfo="text",
        showlegend=False,
        hoverlabel={"bgcolor": "#1F2937", "font": {"color": "#FFFFFF"}},
    )


def _add_spans(figure: go.Figure, info: CriticalAttentionInfo) -> None:
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


def _add_threshold(figure: go.Figure, info: CriticalAttentionInfo) -> None:
    if info.threshold is None or info.threshold <= 0:
        return
    figure.add_scatter(
        x=[0, info.num_tokens],
        y=[info.threshold] * 2,
        mode="lines",
        hoverinfo="skip",
        name="threshold",
        line={"width": 1.5, "color": theme.VERMILLION, "dash": "dash"},
    )


def _add_top(figure: go.Figure, info: CriticalAttentionInfo) -> None:
    figure.add_scatter(
        x=[token.position + 0.5 for token in info.top],
        y=[token.score for token in info.top],
        mode="markers+text",
        text=[words.plain(token.text) for token in info.top],
        textposition="top center",
        hoverinfo="skip",
        showlegend=False,
        marker={"symbol": "triangle-down", "size": 9, "color": theme.VERMILLION},
        cliponaxis=False,
    )
