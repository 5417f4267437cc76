"""How long blocks had been idle when they were hit, and when they were evicted."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import CacheRun
from viz import theme
from viz.figures import words

TITLE = "Idle time at a hit and at eviction"
HEIGHT = 380
TICKS = {1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min", 3600.0: "1 h", 86400.0: "1 day"}


@dataclass(frozen=True, eq=False, slots=True)
class AgesInfo:
    """Args:
    upper_s: float64 [n], upper ends of the buckets; hit, evicted: float64 [n], share of all hits and of all evictions.
    num_hit, num_evicted: blocks in all.
    overlap: what both distributions share, 0 to 1: at 1 idle time tells nothing about who comes back.
    """

    policy: str
    upper_s: np.ndarray
    hit: np.ndarray
    evicted: np.ndarray
    num_hit: int
    num_evicted: int
    overlap: float


def evict_ages_info(run: CacheRun) -> AgesInfo | None:
    """Returns both distributions, None where nothing was hit or nothing evicted."""
    ages = run.ages
    num_hit, num_evicted = int(ages.num_hit.sum()), int(ages.num_evicted.sum())
    if not num_hit or not num_evicted:
        return None
    hit, evicted = ages.num_hit / num_hit, ages.num_evicted / num_evicted
    return AgesInfo(run.policy, ages.upper_s, hit, evicted, num_hit, num_evicted, float(np.minimum(hit, evicted).sum()))


def median_s(info: AgesInfo, shares: np.ndarray) -> float:
    """Returns the upper end of the bucket in which the middle lies."""
    return float(info.upper_s[min(int(np.searchsorted(np.cumsum(shares), 0.5)), len(info.upper_s) - 1)])


def evict_ages_figure(info: AgesInfo | None, reason: str = "Nothing was hit, or nothing was evicted.") -> go.Figure:
    """Returns both distributions as steps, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    subtitle = f"{words.plain(theme.policy_style(info.policy).label)}; where both lie together, idle time does not tell who comes back"
    layout = theme.base_layout(TITLE, HEIGHT, theme.broken(subtitle))
    layout.hovermode = "closest"
    used = np.flatnonzero((info.hit > 0) | (info.evicted > 0))
    low, high = max(0.2, float(info.upper_s[used[0]]) / 2), float(info.upper_s[min(used[-1] + 1, len(info.upper_s) - 1)])
    ticks = [tick for tick in TICKS if low <= tick <= high * 1.3]
    layout.xaxis.update(
        type="log", title_text="idle time", range=[np.log10(low), np.log10(high * 1.3)], tickvals=ticks, ticktext=[TICKS[t] for t in ticks]
    )
    layout.yaxis.update(title_text="share of blocks", tickformat=".0%", fixedrange=True, rangemode="tozero")
    figure = go.Figure(layout=layout)
    for name, shares, color, dash in (("hit", info.hit, theme.GREEN, "solid"), ("evicted", info.evicted, theme.VERMILLION, "dash")):
        figure.add_scatter(
            x=info.upper_s,
            y=shares,
            mode="lines",
            name=name,
            line={"color": color, "width": 3, "dash": dash, "shape": "vh"},
            fill="tozeroy",
            fillcolor=f"rgba({int(color[1:3], 16)},{int(color[3:5], 16)},{int(color[5:], 16)},0.14)",
            hovertext=[f"{name} after up to {_time(u)}: {words.percent(s)}" for u, s in zip(info.upper_s, shares, strict=True)],
            hoverinfo="text",
        )
    return figure


def _time(value_s: float) -> str:
    if not np.isfinite(value_s):
        return "any time"
    return f"{value_s:.1f} s" if value_s < 120 else f"{value_s / 60:.0f} min"


def evict_ages_words(info: AgesInfo | None) -> str:
    """Returns medians and overlap in one sentence."""
    if info is None:
        return ""
    hit, evicted = (_time(median_s(info, shares)) for shares in (info.hit, info.evicted))
    return (
        f"Half of the {info.num_hit:,} hits came within {hit} of the last use, half of the {info.num_evicted:,} evictions "
        f"within {evicted}; the two overlap by {words.percent(info.overlap)}."
    )
