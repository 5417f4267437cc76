"""Why tokens were not found: never seen, evicted, behind a changed prefix, or at a prompt's end that fills no block."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from engine.cache_types import MISS_NAMES, CacheRun
from viz import theme
from viz.figures import words
from viz.figures.evict_scores import by_policy
from viz.figures.marks import hatched

TITLE = "Why tokens were missed"
ROW_PX, BAR = 50, 0.42
ORDER = ("hit", "evicted", "changed prefix", "cold", "shorter than a block")


@dataclass(frozen=True, slots=True)
class MissRow:
    """A policy's prompt tokens of the second half by what became of them, in the order of ORDER."""

    policy: str
    num_tokens: tuple[int, ...]

    @property
    def total(self) -> int:
        """Returns all prompt tokens."""
        return sum(self.num_tokens)

    def share(self, name: str) -> float:
        """Returns the share of one outcome."""
        return self.num_tokens[ORDER.index(name)] / max(self.total, 1)


@dataclass(frozen=True, slots=True)
class MissesInfo:
    """Rows in reading order, each policy's first seed."""

    rows: tuple[MissRow, ...]


def evict_misses_info(runs: Sequence[CacheRun]) -> MissesInfo | None:
    """Returns the outcomes of each policy, None without runs."""
    rows = []
    for name, own in by_policy(runs).items():
        half = own[0].num_requests // 2
        missed = dict(zip(MISS_NAMES, own[0].requests.missed_tokens[half:].sum(axis=0).tolist(), strict=True))
        counts = {"hit": int(own[0].requests.hit_tokens[half:].sum()), **missed}
        rows.append(MissRow(name, tuple(counts[outcome] for outcome in ORDER)))
    return MissesInfo(tuple(rows)) if rows else None


def evict_misses_figure(info: MissesInfo | None, reason: str = "Nothing was replayed.") -> go.Figure:
    """Returns a whole bar a policy, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    subtitle = "every prompt token of the second half; only “evicted” depends on the policy"
    layout = theme.base_layout(TITLE, ROW_PX * len(info.rows) + 176, theme.broken(subtitle), barmode="stack", bargap=0)
    layout.margin.update(l=16, r=26, b=76)
    layout.xaxis.update(range=[0, 1], tickformat=".0%")
    layout.yaxis.update(range=[len(info.rows) - 0.4, -0.8], visible=False, fixedrange=True)
    layout.legend.traceorder = "normal"
    figure = go.Figure(layout=layout)
    for outcome in ORDER:
        style = theme.MISSES[outcome]
        shares = [row.share(outcome) for row in info.rows]
        if any(shares):
            figure.add_bar(
                x=shares,
                y=list(range(len(info.rows))),
                width=BAR,
                orientation="h",
                name=style.label,
                marker=hatched(style.color, style.hatch, {"width": 0.5, "color": theme.INK}),
                hovertext=[f"<b>{_label(row)}</b><br>{style.label}: {words.percent(row.share(outcome))}" for row in info.rows],
                hoverinfo="text",
            )
    for place, row in enumerate(info.rows):
        text = f"<b>{_label(row)}</b>  evicted {words.percent(row.share('evicted'))}"
        figure.add_annotation(x=0, xref="paper", y=place - 0.44, text=text, xanchor="left", showarrow=False, borderpad=0, font={"size": 14})
    return figure


def _label(row: MissRow) -> str:
    return words.plain(theme.policy_style(row.policy).label)


def evict_misses_words(info: MissesInfo | None) -> str:
    """Returns the parts that no policy changes, in one sentence."""
    if info is None:
        return ""
    row = info.rows[0]
    said = ", ".join(f"{name} {words.percent(row.share(name))}" for name in ("cold", "changed prefix", "shorter than a block"))
    return f"No policy can help with: {said} of the prompt tokens."
