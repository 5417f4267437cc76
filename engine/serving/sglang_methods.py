"""What to send to an SGLang server for each method of a request. Knows no connection."""

import uuid
from collections.abc import Mapping

from engine.errors import BadRequest
from engine.fusion.base import FusionMethod
from engine.fusion.compose import create_method, has_ratio, has_seed
from engine.model.prompt import Prompt
from engine.serving.sglang.metadata import FusionMeta, RequestMeta, write_meta
from engine.serving.sglang_answer import NOTHING, Asked
from engine.serving.sglang_lane import PREFIX_CACHE
from engine.types import FusionRequest


def asked(name: str, request: FusionRequest, prompt: Prompt) -> Asked:
    """Returns what to send for a method. Raises UnknownName, BadRequest."""
    custom = NOTHING if made(name, request) is None else _custom(name, request, prompt)
    # With a salt of its own a request finds nothing cached and leaves nothing to others; without one the cache is the method.
    salt = None if name == PREFIX_CACHE else new_salt()
    return Asked(prompt.ids.tolist(), request.max_new_tokens, request.temperature, request.seed, custom, salt)


def made(name: str, request: FusionRequest) -> FusionMethod | None:
    """Returns the built-in engine's method of a name, None for what the server does by itself. Raises UnknownName, BadRequest."""
    if name in (PREFIX_CACHE, "full"):
        return None
    method = create_method(name, **_params(name, request))
    if method.corrects_keys or method.reweighs:
        raise BadRequest(f"The method {name!r} reads the context in a way that SGLang's attention does not; choose another.")
    return method


def new_salt() -> str:
    """Returns a salt that no other request has."""
    return f"fusescope-{uuid.uuid4().hex}"


def _custom(name: str, request: FusionRequest, prompt: Prompt) -> Mapping[str, str]:
    fusion = FusionMeta(prompt.chunk_spans, prompt.question_span, name, _params(name, request), request.chunk_context)
    return write_meta(RequestMeta(fusion=fusion))


def _params(name: str, request: FusionRequest) -> dict[str, bool | int | float | str]:
    ratio: dict[str, bool | int | float | str] = {"ratio": request.ratio} if has_ratio(name) else {}
    return ratio | ({"seed": request.seed} if has_seed(name) else {})
