"""Puts the routes together: what the app passes to its server, in front of the page's own routes."""

from collections.abc import Container, Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import EngineError
from engine.serving.chat import ChatRoutes
from engine.serving.documents import DocumentRoutes
from engine.serving.door import Door, ServedSession
from engine.serving.health import WatchRoutes
from engine.serving.limits import RequestLimits
from engine.serving.problems import UNEXPECTED, Problem, problem_of, problem_of_body

# Where pages are rendered by a server in front (GRADIO_SSR_MODE), it passes on only what stands under the second one.
PREFIXES = ("", "/gradio_api")


def app_options(session: ServedSession, costly: Container[int] = (), events: Mapping[int, object] | None = None) -> dict[str, Any]:
    """Returns what a FastAPI application needs to serve the API of a session: its `routes` and its `middleware`.

    Args:
        costly: numbers of the page's events that use the engine, which count against a visitor's quota.
        events: names of all the page's events by number.
    """
    door = Door.to(session)
    watch, api = WatchRoutes(door), _api(door)
    routes: list[BaseRoute] = []
    for prefix in PREFIXES:
        routes += [
            Mount(prefix + "/v1", app=_Rooted(api, prefix + "/v1")),
            Route(prefix + "/healthz", _answering(watch.health), methods=["GET"]),
            Route(prefix + "/metrics", _answering(watch.metrics), methods=["GET"]),
        ]
    limits = Middleware(RequestLimits, protection=session.settings.protection, quotas=door.quotas, costly=costly, events=events)
    return {"routes": routes, "middleware": [limits]}


class _Rooted:
    """An application under a path of ours, where all of ours stands below another path (GRADIO_ROOT_PATH).

    Proxies take that path away before they pass a request on, and what is mounted looks for it: it is put back.
    """

    def __init__(self, app: ASGIApp, under: str) -> None:
        self._app, self._under = app, under

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection."""
        root, path = scope.get("root_path", ""), scope["path"]
        if not path.startswith(root):
            scope = {**scope, "path": root.removesuffix(self._under) + path}
        await self._app(scope, receive, send)


def _api(door: Door) -> FastAPI:
    """Returns the application under /v1. Its pages of documentation would fetch scripts from elsewhere and are left out."""
    api = FastAPI(title="Fusescope", docs_url=None, redoc_url=None, exception_handlers=_HANDLERS)
    models = APIRouter()

    @models.get("/models")
    async def list_models(request: Request) -> dict[str, Any]:
        """Lists the one model that runs."""
        door.admit(request)
        return {"object": "list", "data": [_model(door.model_id)]}

    @models.get("/models/{name:path}")
    async def one_model(request: Request, name: str) -> dict[str, Any]:
        """Returns the model that runs, by one of its names."""
        door.admit(request)
        return _model(door.check_model(name))

    for router in (models, ChatRoutes(door).router, DocumentRoutes(door).router):
        api.include_router(router)
    return api


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "fusescope"}


async def _engine_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError), "registered for these"
    return problem_of(error).response()


async def _bad_body(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "registered for these"
    return problem_of_body(error.errors()).response()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for these"
    known = {
        400: ("The body cannot be read; send JSON in UTF-8, or for an upload a form with `file`.", "invalid_body"),
        404: ("There is no such address here; see /v1/models, /v1/chat/completions, /v1/documents.", "unknown_url"),
    }
    message, code = known.get(error.status_code, (f"{error.detail}.", "http_error"))
    return Problem(error.status_code, message, code=code).response()


async def _unexpected(request: Request, error: Exception) -> Response:
    return Problem(500, UNEXPECTED, "server_error", code="internal_error").response()


_HANDLERS = {
    EngineError: _engine_error,
    RequestValidationError: _bad_body,
    HTTPException: _http_error,
    Exception: _unexpected,
}


def _answering(endpoint: Any) -> Any:
    """Returns an endpoint outside the API's own application, its errors answered in the same form."""

    async def answer(request: Request) -> Response:
        try:
            found: Response = await endpoint(request)
        except EngineError as error:
            return problem_of(error).response()
        return found

    return answer
