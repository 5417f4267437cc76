"""From the requests of a live run so far to what its part of the Evict tab shows. Knows nothing of Gradio."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from engine.cache_types import LiveAsk, LivePoint
from engine.errors import BadRequest
from viz import theme
from viz.figures.evict_live import LivePolicy, evict_live_figure, evict_live_held_figure, evict_live_info, evict_live_words
from viz.figures.evict_scores import FLOOR, rate_words
from viz.figures.words import seconds

EMPTY = "Nothing ran live yet; press “Run live”."
BADGE = "LIVE"


class LiveView(NamedTuple):
    """What is shown of a live run."""

    times: go.Figure
    words: str
    table: dict[str, Any]
    held: go.Figure


def parse_live(names: Sequence[str], rival: Any, requests: Any, percent: Any, seed: Any) -> LiveAsk:
    """Returns the live run that the form asks for: LRU and its rival. Raises BadRequest."""
    if rival not in names or rival == FLOOR:
        known = ", ".join(name for name in names if name != FLOOR)
        raise BadRequest(f"The policy {str(rival)[:40]!r} cannot run against LRU; choose one of: {known}.")
    if not isinstance(percent, int | float) or not 0 < percent < 100:
        raise BadRequest(f"The capacity is {str(percent)[:20]} %; give more than 0 and less than 100 % of the distinct blocks.")
    if not isinstance(requests, int | float) or not isinstance(seed, int | float) or seed < 0:
        raise BadRequest(f"Requests are {str(requests)[:20]}, the seed {str(seed)[:20]}; both must be numbers, the seed not below 0.")
    return LiveAsk((FLOOR, rival), int(requests), percent / 100, int(seed))


def live_view(points: Sequence[LivePoint], policies: Sequence[str]) -> LiveView:
    """Returns figures, words and table of what was served so far."""
    info = evict_live_info(points, policies) if points else None
    badge = f"  <span style='font-size:12px'>{BADGE}</span>" if info else ""
    times = evict_live_figure(info, EMPTY)
    held = evict_live_held_figure(info, policies[-1] if policies else FLOOR, EMPTY)
    for figure in (times, held):
        title, *rest = figure.layout.title.text.split("<br>")
        figure.layout.title.text = "<br>".join([title + badge, *rest])
    rows = [_row(one) for one in info.policies] if info else []
    columns = ["Policy", "Requests", "Mean time to first token", "to LRU's", "Prompt tokens found", "Evictions", "Blocks held", "free"]
    note = "Intervals are 95 %, over requests; the ratio is paired, as both serve the same ones." if info else ""
    caption = f"Policies side by side · {BADGE}" if info else "Policies side by side"
    table = {"caption": caption, "columns": columns, "rows": rows, "reason": EMPTY, "note": note}
    return LiveView(times, evict_live_words(info), table, held)


def _row(one: LivePolicy) -> list[str]:
    mean, ratio = one.mean_s, one.to_first
    return [
        theme.policy_style(one.policy).label,
        f"{len(one.ttft_s):,}",
        seconds(mean.value) + (f" [{seconds(mean.lo)}, {seconds(mean.hi)}]" if len(one.ttft_s) > 1 else ""),
        "–" if ratio is None else f"{ratio.value:.2f}× [{ratio.lo:.2f}, {ratio.hi:.2f}]",
        rate_words(one.hit_share),
        f"{one.num_evicted:,}",
        f"{int(one.held[-1, :4].sum()):,}",
        f"{int(one.held[-1, 4]):,}",
    ]
