"""What a request to SGLang may say to the plugin: `custom_params["fusescope"]` of its sampling parameters, as JSON text.

Text, because SGLang carries no lists of lists from process to process. Everything may be left out. Values that break a rule make the
request fall back to what the server does without them, with a sentence that says why.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from engine.errors import BadRequest
from engine.prefix.request import UNKNOWN
from engine.types import ChunkContext

FIELD = "fusescope"
# Policies compute with these in the scheduler's process, which an error there would end for everyone.
MAX_TURN, MAX_TIME_S = 2**31 - 1, 1e12
KindName = Literal["system", "user", "tool_output", "response", "cot"]


class FusionMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request's chunks, to be fused.

    Args:
        chunks: [start, stop) token positions of the documents, one behind the other; the first begins where the system part ends.
        question: [start, stop) of the question's own words.
        method: of the built-in engine, with additions as there.
        params: of the method, e.g. {"ratio": 0.2, "critical_layer": 21, "anchor_ratio": 0.1}.
        context: what the chunks' stored KV has seen.
        keep: a request with a `cache_salt` stays in the server's prefix cache under that salt, for the next turn of the same reader;
            otherwise nothing of a fused request is cached.
    """

    chunks: tuple[tuple[int, int], ...]
    question: tuple[int, int]
    method: str = "qcfuse"
    params: dict[str, bool | int | float | str] = {}
    context: ChunkContext = "system"
    keep: bool = False


class RequestMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the policy is told of a request, and its chunks where it is to be fused.

    Args:
        session: name of the conversation; without it the cached blocks tell which one is continued.
        turn: requests of the session before this one; counted without it.
        agent: the session has tools; without it whether the prompt holds a tool's output.
        waits_for_tool: the answer will end in a tool call.
        follow_up: predicted probability that the session goes on.
        time_s: of the request, by a clock of the client's that replays a trace; without it the server's.
        kinds: token types of the prompt as runs of (type, number of tokens); without them the chat template tells.
    """

    session: str | None = None
    turn: Annotated[int, msgspec.Meta(ge=0, le=MAX_TURN)] | None = None
    agent: bool | None = None
    waits_for_tool: bool = False
    follow_up: Annotated[float, msgspec.Meta(ge=UNKNOWN, le=1.0)] = UNKNOWN
    time_s: Annotated[float, msgspec.Meta(ge=-MAX_TIME_S, le=MAX_TIME_S)] | None = None
    kinds: tuple[tuple[KindName, int], ...] = ()
    fusion: FusionMeta | None = None


NOTHING_SAID = RequestMeta()


def write_meta(meta: RequestMeta) -> dict[str, str]:
    """Returns the custom parameters that say it."""
    return {FIELD: msgspec.json.encode(meta).decode()}


def read_meta(custom_params: Mapping[str, Any] | None) -> RequestMeta:
    """Returns what a request's custom parameters say. Raises BadRequest naming the value and the rule."""
    said = custom_params.get(FIELD) if isinstance(custom_params, Mapping) else None
    if said is None:
        return NOTHING_SAID
    try:
        return msgspec.json.decode(said, type=RequestMeta) if isinstance(said, str) else msgspec.convert(said, RequestMeta)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BadRequest(f"custom_params.{FIELD} of the request cannot be read ({error}); correct or leave out that value.") from None
