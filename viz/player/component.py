"""The player as a component of a page that gives scripts `element`, `props` and `watch`, as Gradio's HTML component does.

Its template is constant; a value is base64 of JSON, so no text from outside is ever read as markup or code.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from engine.cache_types import CacheRun
from engine.types import Run
from viz.player.assets import common_options
from viz.player.bundle import bundle
from viz.player.pack import pack_run
from viz.player.pack_cache import pack_film
from viz.player.page import json_island

TEMPLATE: Final = '<div class="fs-root"></div>'
SHELL: Final = "shell/component.js"
_ATTACH: Final = 'attach(element, props, watch, typeof server === "undefined" ? null : server, %s);\n'


def component_script(methods: Iterable[str]) -> str:
    """Returns the script of the component: mounts the first run and shows later ones in its place.

    Where the page gives it a `server` with `packed_run(id)`, a packed run as JSON, the value's `runs` can be chosen from.
    """
    return bundle(SHELL) + _ATTACH % json_island(common_options(methods))


def film_script(policies: Iterable[str]) -> str:
    """Returns the script of a component that shows films of cache runs, with their own tour."""
    return bundle(SHELL) + _ATTACH % json_island(common_options([], policies, ("evict_tour",)))


def film_value(runs: Sequence[CacheRun], title: str = "", is_fresh: bool = False, **options: Any) -> dict[str, str]:
    """Returns the value that shows cache runs of one load; raises BadRequest as `pack_film` does."""
    film = pack_film(runs, title, is_fresh)
    return {"b64": base64.b64encode(_json({"run": film, "key": hashlib.sha256(_json(film)).hexdigest(), "reason": "", **options})).decode()}


def component_value(
    run: Run, times: dict[str, Any] | None = None, reason: str = "", ghost: Run | None = None, flip: Run | None = None, **options: Any
) -> dict[str, str]:
    """Returns the value that shows a run; `options` are those of `mount` that are data (runs, url, linkBase, tab, autoplay, files, engine).

    Args:
        times: benchmark points as viz.player.grid makes them.
        reason: why it is this run, in one line.
        ghost: the other run of the pair live and recorded.
        flip: the run of a second question over the same chunks.
    """
    runs = {name: one and pack_run(one) for name, one in (("run", run), ("ghost", ghost), ("flip", flip))}
    # The same runs handed over again change nothing of what is looked at.
    key = hashlib.sha256(_json(runs)).hexdigest()
    return {"b64": base64.b64encode(_json({**runs, "key": key, "times": times, "reason": reason, **options})).decode()}


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
