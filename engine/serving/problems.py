"""Errors as OpenAI's clients expect them: a status and `{"error": {message, type, param, code}}` with one sentence."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi.responses import JSONResponse

from engine import errors
from engine.errors import EngineError

# From the narrowest kind to the widest: the first that fits counts.
_KINDS: tuple[tuple[type[EngineError], int, str, str | None], ...] = (
    (errors.AccessDenied, 401, "authentication_error", "invalid_api_key"),
    (errors.QuotaExceeded, 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.QueueFull, 503, "overloaded_error", "queue_full"),
    (errors.TimedOut, 503, "timeout_error", "timeout"),
    (errors.TooLarge, 413, "invalid_request_error", "request_too_large"),
    (errors.UnknownName, 404, "invalid_request_error", "not_found"),
    (errors.BadDocument, 400, "invalid_request_error", "bad_document"),
    (errors.BadRequest, 400, "invalid_request_error", None),
    (errors.LibraryUnavailable, 503, "unavailable_error", "library_unavailable"),
    (errors.ModelUnavailable, 503, "unavailable_error", "model_unavailable"),
    (errors.BackendUnavailable, 503, "unavailable_error", "backend_unavailable"),
    (errors.Cancelled, 499, "cancelled_error", "cancelled"),
    (EngineError, 500, "server_error", "engine_error"),
)
UNEXPECTED = "The request failed inside the engine; it is noted in the server's log, and the next request works."
QUEUE_RETRY_S = 10
# How pydantic begins the rule that a value breaks.
_RULE = re.compile(r"^\w+ should ")


@dataclass(frozen=True, slots=True)
class Problem:
    """An error of one request: HTTP status, the sentence, OpenAI's type, the field at fault, a code, headers."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Returns the JSON object. What it repeats of a request may hold half a character, which no response can."""
        told = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": {name: text and text.encode(errors="backslashreplace").decode() for name, text in told.items()}}

    def response(self) -> JSONResponse:
        """Returns the HTTP response."""
        return JSONResponse(self.body(), self.status, dict(self.headers))


class WrongField(errors.BadRequest):
    """A value of the body breaks a rule; `param` names it."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


class NoModel(errors.UnknownName):
    """The body names a model that does not run here."""


def problem_of(error: EngineError) -> Problem:
    """Returns the problem that an engine's error is to a client."""
    status, kind, code = next((status, kind, code) for cls, status, kind, code in _KINDS if isinstance(error, cls))
    if isinstance(error, NoModel):
        return Problem(404, str(error), kind, "model", "model_not_found")
    headers: dict[str, str] = {}
    if isinstance(error, errors.QuotaExceeded):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s + 0.5)))
    if isinstance(error, errors.QueueFull):
        headers["Retry-After"] = str(QUEUE_RETRY_S)
    if isinstance(error, errors.AccessDenied):
        headers["WWW-Authenticate"] = "Bearer"
    return Problem(status, str(error), kind, getattr(error, "param", None), code, headers)


def problem_of_body(found_wrong: Sequence[Any]) -> Problem:
    """Returns the problem of a body whose fields do not hold, as pydantic lists them: one of them, with its value and the rule."""
    # A value that fits none of several types is told once for each; the longest path is the nearest miss.
    found = max(found_wrong, key=lambda item: (len(item["loc"]), item["type"] != "string_type"))
    param = _path(found["loc"])
    if found["type"] == "json_invalid":
        return Problem(400, "The body is not JSON; send a JSON object with `model` and `messages`.", code="invalid_json")
    if isinstance(found.get("input"), bytes):
        return Problem(400, "The body is not sent as JSON; add the header `Content-Type: application/json`.", code="invalid_json")
    if "UploadFile" in found["msg"]:
        return Problem(400, f"The field `{param}` is no file; send a form with a file in it.", param=param, code="invalid_value")
    if found["type"] == "string_unicode":
        return Problem(
            400, f"The field `{param}` holds half a character; send it whole or leave it out.", param=param, code="invalid_value"
        )
    if found["type"] == "extra_forbidden":
        return Problem(400, f"The field `{param}` is not known here; remove it.", param=param, code="unknown_parameter")
    if found["type"] == "missing":
        return Problem(400, f"The field `{param}` is missing; add it.", param=param, code="missing_required_parameter")
    rule = _RULE.sub("it should ", found["msg"].removeprefix("Value error, "))
    return Problem(400, f"The field `{param}` is {_short(found['input'])}; {rule}.", param=param, code="invalid_value")


def _path(location: Sequence[int | str]) -> str:
    """Returns `messages[0].content` of ("messages", 0, "content"); names of alternatives in a union are left out."""
    parts = [part for part in location if isinstance(part, int) or (part.isidentifier() and not part[0].isupper())]
    parts = [part for part in parts if part not in ("str", "bool", "int", "float", "body")]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".") or "body"


def _short(value: object, most: int = 60) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= most else text[: most - 1] + "…"
