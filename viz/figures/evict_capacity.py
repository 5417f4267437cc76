"""Hit rate against the size of the cache, every policy between LRU and MIN."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import CacheRun
from viz import theme
from viz.figures import words
from viz.figures.evict_hit_time import RIGHT, add_line_names, rate_range
from viz.figures.evict_scores import FLOOR, LIMIT, Spread, hit_rate, points, rate_words, spread

TITLE = "How much room it takes"
HEIGHT, HERE_PX, MOST_TICKS = 430, 18, 8
TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class CapacityPoint:
    """A policy's hit rate, by tokens of the second half, at one capacity.

    Args:
        share: capacity over the distinct blocks of the workload; capacity_blocks as replayed with the first seed.
    """

    policy: str
    share: float
    capacity_blocks: int
    rate: Spread


@dataclass(frozen=True, slots=True)
class CapacityInfo:
    """Points by policy in reading order, smallest cache first; `share` is the capacity looked at, None without one."""

    curves: tuple[tuple[CapacityPoint, ...], ...]
    share: float | None

    def behind(self, policy: str, by: float = 0.0005) -> tuple[float, ...]:
        """Returns the shares at which a policy finds less than LRU by more than `by`."""
        floor = {p.share: p.rate.mean for curve in self.curves for p in curve if p.policy == FLOOR}
        own = [p for curve in self.curves for p in curve if p.policy == policy]
        return tuple(p.share for p in own if p.share in floor and p.rate.mean < floor[p.share] - by)


def capacity_points(runs: Iterable[CacheRun]) -> tuple[CapacityPoint, ...]:
    """Returns a point for each policy and capacity among runs; several seeds become one point."""
    found: dict[tuple[str, float], list[CacheRun]] = {}
    for run in runs:
        found.setdefault((run.policy, share_of(run)), []).append(run)
    return tuple(
        CapacityPoint(policy, share, own[0].capacity_blocks, spread([hit_rate(run, "tokens") for run in own]))
        for (policy, share), own in found.items()
    )


def share_of(run: CacheRun) -> float:
    """Returns the capacity over the distinct blocks, to three digits, so that seeds of one setting agree."""
    return float(f"{run.capacity_blocks / run.num_blocks:.2g}")


def evict_capacity_info(points_: Sequence[CapacityPoint], share: float | None = None) -> CapacityInfo | None:
    """Returns the curves of policies that have two points at least, None where there is none."""
    curves = []
    for policy in theme.policy_order({point.policy for point in points_}):
        own = {point.share: point for point in points_ if point.policy == policy}
        if len(own) > 1:
            curves.append(tuple(own[key] for key in sorted(own)))
    return CapacityInfo(tuple(curves), share) if curves else None


def evict_capacity_figure(info: CapacityInfo | None, reason: str = "Only one capacity was replayed so far.") -> go.Figure:
    """Returns a line a policy over a logarithmic axis, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    every = [point for curve in info.curves for point in curve]
    layout = theme.base_layout(TITLE, HEIGHT, theme.broken("share of prompt tokens found, second half of the requests"), showlegend=False)
    layout.margin.update(r=RIGHT, t=layout.margin.t + HERE_PX)
    layout.height += HERE_PX
    layout.hovermode = "closest"
    low, high = min(p.share for p in every), max(p.share for p in every)
    shares = sorted({p.share for p in every})
    ticks = shares if len(shares) <= MOST_TICKS else [tick for tick in TICKS if 0.99 * low <= tick <= 1.01 * high]
    layout.xaxis.update(
        type="log",
        title_text="capacity, share of the distinct blocks",
        range=[np.log10(low * 0.93), np.log10(high * 1.07)],
        tickvals=ticks,
        ticktext=[words.percent(tick) for tick in ticks],
    )
    span = rate_range(np.array([(p.rate.lo, p.rate.hi) for p in every]))
    layout.yaxis.update(range=span, tickformat=".0%", fixedrange=True)
    figure = go.Figure(layout=layout)
    _add_gap(figure, info)
    for curve in info.curves:
        _add_curve(figure, curve)
    if info.share is not None and low * 0.93 <= info.share <= high * 1.07:
        figure.add_vline(x=info.share, line={"color": theme.INK, "width": 1.5, "dash": "dot"})
        here = f"here: {words.percent(info.share)}"
        # Above the picture, where no curve can run through it.
        figure.add_annotation(x=np.log10(info.share), y=1, yref="paper", yanchor="bottom", text=here, showarrow=False, borderpad=0)
    ends = np.array([curve[-1].rate.mean for curve in info.curves])
    add_line_names(figure, [curve[0].policy for curve in info.curves], ends, span)
    return figure


def _add_gap(figure: go.Figure, info: CapacityInfo) -> None:
    ends = {curve[0].policy: curve for curve in info.curves if curve[0].policy in (FLOOR, LIMIT)}
    if len(ends) < 2:
        return
    for name, fill in ((FLOOR, None), (LIMIT, "tonexty")):
        figure.add_scatter(
            x=[p.share for p in ends[name]],
            y=[p.rate.mean for p in ends[name]],
            mode="lines",
            line={"width": 0},
            fill=fill,
            fillcolor="rgba(128,128,128,0.14)",
            hoverinfo="skip",
            name="between LRU and MIN",
        )


def _add_curve(figure: go.Figure, curve: tuple[CapacityPoint, ...]) -> None:
    style = theme.policy_style(curve[0].policy)
    label = words.plain(style.label)
    figure.add_scatter(
        x=[p.share for p in curve],
        y=[round(p.rate.mean, 5) for p in curve],
        mode="lines+markers",
        name=label,
        line={"color": style.color, "width": 2.5, "dash": style.dash},
        marker={"symbol": style.symbol, "size": 9, "color": style.color, "line": {"width": 1, "color": theme.INK}},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [p.rate.hi - p.rate.mean for p in curve],
            "arrayminus": [p.rate.mean - p.rate.lo for p in curve],
            "color": style.color,
            "thickness": 1,
            "width": 3,
        },
        hovertext=[
            f"<b>{label}</b><br>{words.percent(p.share)} of the blocks ({p.capacity_blocks:,}): {rate_words(p.rate.mean)}"
            + (f"<br>{p.rate.n} seeds, {rate_words(p.rate.lo)} to {rate_words(p.rate.hi)}" if p.rate.n > 1 else "")
            for p in curve
        ],
        hoverinfo="text",
    )


def evict_capacity_words(info: CapacityInfo | None, policy: str = "saecache") -> str:
    """Returns a policy's distance to LRU at every capacity in one sentence."""
    if info is None:
        return ""
    floor = {p.share: p.rate.mean for curve in info.curves for p in curve if p.policy == FLOOR}
    own = [p for curve in info.curves for p in curve if p.policy == policy and p.share in floor]
    if not own:
        return ""
    said = ", ".join(f"{points(p.rate.mean - floor[p.share])} at {words.percent(p.share)}" for p in own)
    return f"{theme.policy_style(policy).label} against LRU: {said}."
