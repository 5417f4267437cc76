"""What the cache holds over time, queue by queue, with the space that is free."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import QUEUE_NAMES, CacheRun
from viz import theme
from viz.figures import words
from viz.figures.evict_bands import Bands, bands_figure

TITLE = "What is in the cache"
HEIGHT = 500


@dataclass(frozen=True, slots=True)
class OccupancyInfo:
    """Bands by queue and free space; `has_queues` is False for a policy that files nothing, all of whose blocks are one band."""

    policy: str
    bands: Bands
    has_queues: bool


def evict_occupancy_info(run: CacheRun) -> OccupancyInfo | None:
    """Returns the bands of a run, None where no moment was recorded."""
    queues = run.snapshots.queues.astype(np.int64)
    if not len(queues):
        return None
    has_queues = bool(queues[:, 1:].any())
    held = queues if has_queues else queues.sum(axis=1, keepdims=True)
    free = run.capacity_blocks - held.sum(axis=1, keepdims=True)
    names = (*(QUEUE_NAMES if has_queues else ("blocks",)), "free")
    return OccupancyInfo(
        run.policy, Bands(run.snapshots.request, names, np.concatenate([held, free], axis=1), run.capacity_blocks), has_queues
    )


def evict_occupancy_figure(info: OccupancyInfo | None, reason: str = "No moments were recorded.") -> go.Figure:
    """Returns the stacked areas, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    label = words.plain(theme.policy_style(info.policy).label)
    filed = "by queue" if info.has_queues else "this policy has no queues"
    return bands_figure(info.bands, theme.QUEUES, TITLE, theme.broken(f"{label}, {filed}; at the right: share at the end"), HEIGHT)


def evict_occupancy_words(info: OccupancyInfo | None) -> str:
    """Returns one sentence on the end of the run, and when the cache was first full."""
    if info is None:
        return ""
    bands = info.bands
    full = np.flatnonzero(bands.counts[:, -1] == 0)
    when = f"full after request {bands.requests[full[0]]:,}" if len(full) else "never full at a recorded moment"
    ends = [f"{theme.QUEUES[name].label} {count:,}" for name, count in zip(bands.names, bands.counts[-1].tolist(), strict=True)]
    return f"The cache of {bands.capacity:,} blocks is {when}. At the end: {', '.join(ends)} blocks."
