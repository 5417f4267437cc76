"""From what the visitor entered to a request. Knows nothing of Gradio."""

import math
from dataclasses import dataclass
from typing import Any

from engine.errors import BadRequest
from engine.scenarios import Scenario
from engine.types import Chunk, FusionRequest
from viz import theme
from viz.panels.fuse_offer import default_methods
from viz.panels.place import BUILT_IN, SERVER, server_methods

PREVIEW_CHARS = 90


@dataclass(frozen=True, slots=True)
class FusionForm:
    """The inputs as the browser sent them; any of them may be None or of a wrong type."""

    question: Any
    chunks: Any
    ratio: Any
    methods: Any
    chunk_context: Any
    max_new_tokens: Any
    temperature: Any
    seed: Any
    repeats: Any
    place: Any = BUILT_IN
    prefix_cache: Any = False


@dataclass(frozen=True, slots=True)
class Job:
    """A request that holds, the methods to run for it, and whether the SGLang server runs them."""

    request: FusionRequest
    methods: tuple[str, ...]
    on_server: bool = False


def parse_form(form: FusionForm, scenario: Scenario, known_methods: tuple[str, ...]) -> Job:
    """Returns the job of a form. Raises BadRequest with one sentence for the visitor."""
    methods = theme.method_order(set(_names(form.methods, known_methods)))
    if not methods:
        raise BadRequest("No method is selected; tick at least one.")
    request = scenario.request(
        form.question if isinstance(form.question, str) else "",
        chunks=_kept_chunks(form.chunks, scenario),
        ratio=number("recompute ratio", form.ratio),
        max_new_tokens=whole("answer length", form.max_new_tokens),
        temperature=number("temperature", form.temperature),
        seed=whole("seed", form.seed),
        chunk_context=form.chunk_context,
        repeats=whole("number of repeats", form.repeats),
    )
    return Job(request, server_methods(form.place, methods, form.prefix_cache), form.place == SERVER)


def parse_model_name(value: Any) -> str:
    """Returns a model name or path without spaces around it. Raises BadRequest where there is none."""
    if not isinstance(value, str) or not value.strip():
        raise BadRequest("The model name is empty; pick one, or type a Hugging Face id or a local path.")
    return value.strip()


def chunk_items(scenario: Scenario) -> dict[str, Any]:
    """Returns the chunk list's data: id, title and the beginning of the text."""
    return {
        "items": [
            {"id": p.id, "title": p.title[:200], "preview": " ".join(p.text[: 4 * PREVIEW_CHARS].split())[:PREVIEW_CHARS] + "…"}
            for p in scenario.passages
        ]
    }


def _kept_chunks(value: Any, scenario: Scenario) -> tuple[Chunk, ...]:
    """Returns chunks by the ids of the list, in its order; all of them before the list was touched."""
    known = {chunk.chunk_id: chunk for chunk in scenario.chunks()}
    kept = value.get("kept") if isinstance(value, dict) else None
    if kept is None:
        return tuple(known.values())
    if not isinstance(kept, list) or any(chunk_id not in known for chunk_id in map(str, kept)):
        raise BadRequest("The chunk list does not fit the scenario; choose the scenario again.")
    return tuple(known[str(chunk_id)] for chunk_id in kept)


def _names(value: Any, known: tuple[str, ...]) -> list[str]:
    """Returns the names in a list, or in the method list's value; the usual ones before that was touched.

    A name with additions that are not on offer passes where its method is known: the session knows which additions there are.
    """
    names = value.get("chosen", default_methods(known)) if isinstance(value, dict) else value
    checked = []
    for name in names if isinstance(names, list | tuple) else ():
        if not isinstance(name, str) or (name not in known and ("+" not in name or theme.method_family(name) not in known)):
            raise BadRequest(f"Unknown method {str(name)[:40]!r}; known ones are: {', '.join(known)}.")
        checked.append(name)
    return checked


def number(name: str, value: Any) -> float:
    """Returns an input as a number. Raises BadRequest where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest(f"The {name} is empty; enter a number.")
    return float(value)


def whole(name: str, value: Any) -> int:
    """Returns an input as a whole number. Raises BadRequest where it is none."""
    found = number(name, value)
    if not math.isfinite(found) or found != int(found):
        raise BadRequest(f"The {name} is {value}; it must be a whole number.")
    return int(found)
