"""Evictions that were a mistake: the block was asked for again, and MIN still had it. Strip over the requests, with examples."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import KIND_NAMES, QUEUE_NAMES, CacheRun
from viz import theme
from viz.figures import words
from viz.figures.marks import hatched

TITLE = "Evictions it had reason to regret"
HEIGHT, NUM_BINS, NUM_CASES = 330, 60, 4


@dataclass(frozen=True, slots=True)
class RegretCase:
    """One eviction that cost a hit.

    Args:
        request: during which it left; suffered: the request that missed it, `early_s` seconds later.
        suffered_hit_tokens, suffered_prompt_tokens: what that request found and asked for.
        num_blocks: how many blocks that left during `request` it missed.
    """

    request: int
    suffered: int
    early_s: float
    kind: str
    queue: str
    idle_s: float
    hits: int
    num_blocks: int
    suffered_hit_tokens: int
    suffered_prompt_tokens: int


@dataclass(frozen=True, eq=False, slots=True)
class RegretInfo:
    """Args:
    edges: int [n + 1], bin i holds requests edges[i] to edges[i + 1] - 1.
    num_evicted, num_regretted: int [n]; cases: for each bin the costliest ones.
    has_limit: whether MIN was replayed, without which nothing is known to be regretted.
    """

    policy: str
    edges: np.ndarray
    num_evicted: np.ndarray
    num_regretted: np.ndarray
    cases: tuple[tuple[RegretCase, ...], ...]
    has_limit: bool


def evict_regret_info(run: CacheRun) -> RegretInfo | None:
    """Returns evictions in bins of requests, None where nothing was evicted."""
    log, num = run.evictions, run.num_requests
    if not len(log.block):
        return None
    edges = np.unique(np.linspace(0, num, min(NUM_BINS, num) + 1).astype(int))
    at = np.searchsorted(edges, log.request, side="right") - 1
    bins = len(edges) - 1
    wrong = np.flatnonzero(log.regret)
    return RegretInfo(
        run.policy,
        edges,
        np.bincount(at, minlength=bins),
        np.bincount(at[wrong], minlength=bins),
        tuple(_cases(run, wrong[at[wrong] == i]) for i in range(bins)),
        run.limit_hit_blocks is not None,
    )


def _cases(run: CacheRun, rows: np.ndarray) -> tuple[RegretCase, ...]:
    """Returns the pairs of evicting and suffering request with the most blocks between them, among regretted evictions."""
    log, asked = run.evictions, run.requests
    if not len(rows):
        return ()
    keys = log.request[rows].astype(np.int64) * run.num_requests + log.suffered[rows]
    pairs, first, counts = np.unique(keys, return_index=True, return_counts=True)
    worst = np.lexsort((pairs, -counts))[:NUM_CASES]
    return tuple(
        RegretCase(
            request=int(log.request[row]),
            suffered=int(log.suffered[row]),
            early_s=float(log.early_s[row]),
            kind=KIND_NAMES[log.kind[row]],
            queue=QUEUE_NAMES[log.queue[row]],
            idle_s=float(log.idle_s[row]),
            hits=int(log.hits[row]),
            num_blocks=int(count),
            suffered_hit_tokens=int(asked.hit_tokens[log.suffered[row]]),
            suffered_prompt_tokens=int(asked.prompt_tokens[log.suffered[row]]),
        )
        for row, count in zip(rows[first[worst]], counts[worst], strict=True)
    )


def evict_regret_figure(info: RegretInfo | None, reason: str = "Nothing was evicted: everything fits.") -> go.Figure:
    """Returns a bar a bin, regretted evictions at its foot; a bar's customdata is its bin."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    label = words.plain(theme.policy_style(info.policy).label)
    known = "MIN still had the block when it was asked for again" if info.has_limit else "MIN was not replayed: no regret is known"
    layout = theme.base_layout(TITLE, HEIGHT, theme.broken(f"{label}; {known}"), barmode="stack", bargap=0.08)
    layout.hovermode = "closest"
    layout.xaxis.update(title_text="request during which they left", range=[0, int(info.edges[-1])], tickformat=",d", showgrid=False)
    layout.yaxis.update(title_text="evicted blocks", tickformat=",d", fixedrange=True, rangemode="tozero")
    layout.legend.traceorder = "normal"
    figure = go.Figure(layout=layout)
    centres, widths = (info.edges[:-1] + info.edges[1:]) / 2, np.diff(info.edges)
    rest = info.num_evicted - info.num_regretted
    for name, counts, color, hatch in (("regretted", info.num_regretted, theme.VERMILLION, "x"), ("no loss", rest, theme.GREY, "")):
        figure.add_bar(
            x=centres,
            y=counts,
            width=widths,
            name=name,
            customdata=np.arange(len(centres)),
            marker=hatched(color, hatch, {"width": 0.5, "color": theme.INK}),
            hovertext=[bin_words(info, i) for i in range(len(centres))],
            hoverinfo="text",
        )
    return figure


def bin_words(info: RegretInfo, number: int) -> str:
    """Returns what a bin holds in a few words."""
    evicted, wrong = int(info.num_evicted[number]), int(info.num_regretted[number])
    first, last = int(info.edges[number]), int(info.edges[number + 1]) - 1
    return f"requests {first:,} to {last:,}: {wrong:,} of {evicted:,} evictions regretted"


def evict_regret_words(info: RegretInfo | None) -> str:
    """Returns the total in one sentence."""
    if info is None:
        return ""
    wrong, every = int(info.num_regretted.sum()), int(info.num_evicted.sum())
    worst = int(info.num_regretted.argmax())
    tail = f"; worst: {bin_words(info, worst)}" if wrong else ""
    return f"{wrong:,} of {every:,} evictions ({words.percent(wrong / every)}) cost a hit that MIN would have had{tail}."
