"""The places where a request may run, by name. Knows nothing of Gradio."""

from typing import Any

from engine.errors import BadRequest
from engine.serving.sglang_lane import PREFIX_CACHE

BUILT_IN, SERVER = "built_in", "sglang"


def server_methods(place: Any, methods: tuple[str, ...], prefix_cache: Any) -> tuple[str, ...]:
    """Returns the methods of a request at a place. Raises BadRequest where there is no such place."""
    if place not in (BUILT_IN, SERVER):
        raise BadRequest(f"Unknown place {str(place)[:40]!r}; choose the built-in engine or the SGLang server.")
    return (*methods, PREFIX_CACHE) if place == SERVER and prefix_cache is True else methods
