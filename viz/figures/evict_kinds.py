"""What kinds of tokens the cache holds over time."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from engine.cache_types import KIND_NAMES, CacheRun
from viz import theme
from viz.figures import words
from viz.figures.evict_bands import Bands, bands_figure

TITLE = "What kinds of tokens it holds"


@dataclass(frozen=True, slots=True)
class KindsInfo:
    """Bands by token type."""

    policy: str
    bands: Bands


def evict_kinds_info(run: CacheRun) -> KindsInfo | None:
    """Returns the bands of a run, None where no moment was recorded."""
    kinds = run.snapshots.kinds.astype(np.int64)
    return KindsInfo(run.policy, Bands(run.snapshots.request, KIND_NAMES, kinds, run.capacity_blocks)) if len(kinds) else None


def evict_kinds_figure(info: KindsInfo | None, reason: str = "No moments were recorded.") -> go.Figure:
    """Returns the stacked areas, or a titled empty figure that says why."""
    if info is None:
        return theme.empty_figure(TITLE, reason)
    label = words.plain(theme.policy_style(info.policy).label)
    return bands_figure(info.bands, theme.KINDS, TITLE, theme.broken(f"{label}; a block counts as what most of its tokens are"))


def evict_kinds_words(info: KindsInfo | None) -> str:
    """Returns one sentence on the mix at the end of the run."""
    if info is None:
        return ""
    held = info.bands.counts[-1]
    shares = [
        f"{name} {words.percent(count / max(int(held.sum()), 1))}" for name, count in zip(KIND_NAMES, held.tolist(), strict=True) if count
    ]
    return f"Of the {int(held.sum()):,} blocks held at the end: {', '.join(shares)}."
