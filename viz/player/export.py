"""One run as one HTML file that plays from a disk, with its run file inside, and that of the run it is compared with."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from engine.cache_types import CacheRun
from engine.runfile import dump_run
from engine.types import Run
from viz.player.assets import common_options, style
from viz.player.bundle import bundle
from viz.player.pack import pack_run
from viz.player.pack_cache import pack_film
from viz.player.page import single_page


def export_html(
    run: Run,
    times: dict[str, Any] | None = None,
    ghost: Run | None = None,
    ghost_times: dict[str, Any] | None = None,
    flip: Run | None = None,
) -> str:
    """Returns the page.

    Args:
        times: benchmark points as viz.player.grid makes them; `ghost_times` are those of the ghost's machine and model.
        ghost: the other run of the pair live and recorded, with which `run` changes places.
        flip: the run of a second question over the same chunks.
    """
    shown = [run, *([ghost] if ghost else [])]
    data = {
        **common_options(_names(shown)),
        "run": pack_run(run),
        "ghost": ghost and pack_run(ghost),
        "flip": flip and pack_run(flip),
        "times": times,
        "otherTimes": ghost_times,
        "runFiles": {one.provenance.mode: base64.b64encode(dump_run(one)).decode() for one in shown},
    }
    return single_page(bundle(), style(), data)


def export_film(runs: Sequence[CacheRun], files: Mapping[str, bytes], title: str | Mapping[str, str] = "", is_fresh: bool = False) -> str:
    """Returns a page with cache runs of one load; `files` are their run files by policy. Raises BadRequest as `pack_film` does."""
    data = {
        **common_options([], [run.policy for run in runs], ("evict_tour",)),
        "run": pack_film(runs, title, is_fresh=is_fresh),
        "runFiles": {policy: base64.b64encode(raw).decode() for policy, raw in files.items()},
    }
    return single_page(bundle(), style(), data)


def _names(runs: Sequence[Run]) -> list[str]:
    return [method.method for run in runs for method in run.methods]
