"""A live run as it goes: time to first token of every request under each policy, side by side, and what it comes to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import QUEUE_NAMES, LivePoint
from viz import theme
from viz.figures import words
from viz.figures.evict_bands import Bands, bands_figure
from viz.figures.labels import whole_ticks

TITLE, HELD_TITLE = "Time to first token, request by request", "What is in the cache"
HEIGHT, HELD_HEIGHT, DRAWS = 430, 380, 2_000
LEAST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the ends of its 95 % interval; the ends are the value where there is one sample."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True, eq=False, slots=True)
class LivePolicy:
    """What a policy did so far.

    Args:
        ttft_s: float64 [n], of requests 0..n - 1; mean_s: their mean.
        to_first: mean over the first policy's on the same requests, paired; None for the first one and under two requests.
        hit_share: prompt tokens found over all; num_evicted: blocks that left.
        held: int [n, 5], blocks by queue and free ones behind each request.
    """

    policy: str
    ttft_s: np.ndarray
    mean_s: Estimate
    to_first: Estimate | None
    hit_share: float
    num_evicted: int
    held: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class LiveInfo:
    """Policies in the order in which they were asked for; `kinds` of the sessions behind requests 0..n - 1."""

    policies: tuple[LivePolicy, ...]
    kinds: tuple[str, ...]


def evict_live_info(points: Sequence[LivePoint], policies: Sequence[str]) -> LiveInfo | None:
    """Returns what the requests served so far come to, None before each policy has served one."""
    own = {name: sorted((point for point in points if point.policy == name), key=lambda point: point.index) for name in policies}
    num = min(len(found) for found in own.values())
    if not num:
        return None
    first = np.array([point.ttft_s for point in own[policies[0]][:num]])
    return LiveInfo(
        tuple(_of_policy(name, own[name][:num], None if name == policies[0] else first) for name in policies),
        tuple(point.kind for point in own[policies[0]][:num]),
    )


def _of_policy(name: str, points: Sequence[LivePoint], first: np.ndarray | None) -> LivePolicy:
    ttft_s = np.array([point.ttft_s for point in points])
    ratio = paired_ratio(ttft_s, first) if first is not None and len(ttft_s) >= LEAST_PAIRS else None
    return LivePolicy(
        policy=name,
        ttft_s=ttft_s,
        mean_s=_estimate(float(ttft_s.mean()), ttft_s[_picks(len(ttft_s))].mean(1)),
        to_first=ratio,
        hit_share=sum(point.hit_tokens for point in points) / max(sum(point.prompt_tokens for point in points), 1),
        num_evicted=sum(point.num_evicted for point in points),
        held=np.array([(*point.queues, point.num_free) for point in points]),
    )


def paired_ratio(ttft_s: np.ndarray, first: np.ndarray) -> Estimate:
    """Returns mean over mean of times [n] of the same requests, with its bootstrap interval over requests."""
    picks = _picks(len(ttft_s))
    return _estimate(float(ttft_s.mean() / first.mean()), ttft_s[picks].mean(1) / first[picks].mean(1))


def _picks(num: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, num, (DRAWS, num))


def _estimate(value: float, drawn: np.ndarray) -> Estimate:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def evict_live_figure(info: LiveInfo | None, reason: str = "No live run yet.") -> go.Figure:
    """Returns a mark a policy for each request, joined where they differ, means at the right, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    layout = theme.base_layout(TITLE, HEIGHT, theme.broken("seconds, every request under each policy in turn; dotted: means"))
    layout.hovermode = "x unified"
    num = len(info.kinds)
    layout.xaxis.update(
        title_text="request", range=[0.4, num + 0.6], tickvals=sorted({1, *whole_ticks(num)[1:]}), tickformat=",d", showgrid=False
    )
    layout.yaxis.update(title_text="seconds", rangemode="tozero", fixedrange=True)
    figure = go.Figure(layout=layout)
    times = np.stack([one.ttft_s for one in info.policies])
    numbers = np.arange(1, times.shape[1] + 1)
    gaps = np.full(len(numbers), np.nan)
    figure.add_scatter(
        x=np.repeat(numbers, 3),
        y=np.stack([times.min(0), times.max(0), gaps], 1).ravel(),
        mode="lines",
        line={"width": 2, "color": "rgba(128,128,128,0.45)"},
        hoverinfo="skip",
        showlegend=False,
    )
    for one in info.policies:
        style = theme.policy_style(one.policy)
        label = words.plain(style.label)
        figure.add_scatter(
            x=numbers,
            y=np.round(one.ttft_s, 4),
            mode="markers",
            name=label,
            marker={"symbol": style.symbol, "size": 9, "color": style.color, "line": {"width": 1, "color": theme.INK}},
            hovertext=[f"{label}: {words.seconds(value)} ({kind})" for value, kind in zip(one.ttft_s, info.kinds, strict=True)],
            hoverinfo="text",
        )
        figure.add_hline(y=one.mean_s.value, line={"color": style.color, "width": 1.5, "dash": "dot"})
    return figure


def evict_live_held_figure(info: LiveInfo | None, policy: str, reason: str = "No live run yet.") -> go.Figure:
    """Returns the blocks of one policy's cache by queue, with the space that is free, as the requests went by."""
    one = next((found for found in info.policies if found.policy == policy), None) if info else None
    if one is None:
        return theme.empty_figure(HELD_TITLE, reason)
    has_queues = bool(one.held[:, 1:4].any())
    held = one.held if has_queues else np.stack([one.held[:, :4].sum(1), one.held[:, 4]], 1)
    names = (*(QUEUE_NAMES if has_queues else ("blocks",)), "free")
    bands = Bands(np.arange(1, len(held) + 1), names, held, int(one.held[0].sum()))
    label = words.plain(theme.policy_style(policy).label)
    return bands_figure(bands, theme.QUEUES, HELD_TITLE, theme.broken(f"{label}, by queue; at the right: share now"), HELD_HEIGHT)


def evict_live_words(info: LiveInfo | None) -> str:
    """Returns who is faster and how sure that is, in one or two sentences."""
    if info is None:
        return ""
    first, *others = info.policies
    num = len(first.ttft_s)
    said = ", ".join(f"{theme.policy_style(one.policy).label} {words.seconds(one.mean_s.value)}" for one in info.policies)
    found = [f"After {num:,} request{'' if num == 1 else 's'}, mean time to first token: {said}."]
    found += [_against(one, first) for one in others if one.to_first is not None]
    return " ".join(found)


def _against(one: LivePolicy, first: LivePolicy) -> str:
    ratio, floor, label = one.to_first, theme.policy_style(first.policy).label, theme.policy_style(one.policy).label
    assert ratio is not None, "only policies with a ratio are told"
    figure = f"{ratio.value:.2f}× [{ratio.lo:.2f}, {ratio.hi:.2f}]"
    if ratio.hi < 1:
        return f"{label} is faster than {floor}: {figure} of its time."
    if ratio.lo > 1:
        return f"{label} is slower than {floor}: {figure} of its time."
    return f"{label} takes {figure} of {floor}'s time: no difference is shown yet."
