"""Limits on HTTP itself, before any route: the size of a request, what a page may ask for, and how often. Plain ASGI."""

import json
from collections.abc import Container, Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.errors import EngineError, QuotaExceeded, TooLarge, UnknownName
from engine.protection import MIB, Protection
from engine.serving.clients import Client
from engine.serving.problems import problem_of
from engine.serving.quotas import Quotas

PAGE_API = "/gradio_api/"
JOIN, CALLS, UPLOAD = PAGE_API + "queue/join", (PAGE_API + "call/", PAGE_API + "run/", PAGE_API + "api/"), PAGE_API + "upload"


class RequestLimits:
    """Refuses bodies that are too long, events of the page beyond a visitor's quota, and those that the page does not have.

    Args:
        costly: numbers of the page's events that use the engine; the others are free.
        events: names of all the page's events by number; None where they are not known, and Gradio fails at a wrong one.
    """

    def __init__(
        self,
        app: ASGIApp,
        protection: Protection,
        quotas: Quotas,
        costly: Container[int] = (),
        events: Mapping[int, object] | None = None,
    ) -> None:
        self._app, self._most, self._quotas, self._costly = app, protection.max_request_mib * MIB, quotas, costly
        self._numbers, self._names = (None, None) if events is None else (frozenset(events), frozenset(events.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, reply = _Counted(receive, self._most), _Reply(send)
        try:
            self._check_length(scope)
            if scope["method"] == "POST" and _path(scope).startswith(PAGE_API):
                await self._charge(scope, body)
            # A route may take the end of a body for a fault of its own: what it answers then is not sent.
            await self._app(scope, body.receive, lambda message: _unless(body.is_over, reply, message))
            if body.is_over:
                raise too_large(self._most)
        except (TooLarge, QuotaExceeded, UnknownName) as error:
            if reply.has_begun:
                raise
            await self._refuse(error, scope, receive, send)

    def _check_length(self, scope: Scope) -> None:
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdigit() or int(length) > self._most:
            raise too_large(self._most)

    async def _charge(self, scope: Scope, body: "_Counted") -> None:
        path, address = _path(scope).rstrip("/"), (scope.get("client") or ("unknown",))[0]
        if path == JOIN:
            event = _parsed(await body.read())
            number = event.get("fn_index")
            self._check_number(number)
            # Free only where it is plain: the page takes "7" and 7.0 for 7 as well.
            if type(number) is not int or number in self._costly:
                self._quotas.charge(Client(f"page-{str(event.get('session_hash'))[:64]}", address), "requests")
        elif path.startswith(CALLS):
            number = None if path.startswith(CALLS[0]) else _parsed(await body.read()).get("fn_index")
            self._check_number(number)
            if number is None and self._names is not None and (name := path.split("/", 3)[3].removeprefix("v2/")) not in self._names:
                raise UnknownName(f"There is no endpoint {name[:80]!r} here; {PAGE_API}info lists those there are.")
            self._quotas.charge(Client(None, address), "requests")
        elif path == UPLOAD:
            # Of a length that is not told, the longest is taken.
            length = int(Headers(scope=scope).get("content-length", self._most))
            self._quotas.charge(Client(None, address), "upload_bytes", length)

    def _check_number(self, number: object) -> None:
        """Raises UnknownName for an event that the page does not have: a page of an earlier start asks for what was there then."""
        if self._numbers is None or not isinstance(number, int | float | str):
            return
        try:
            is_known = int(number) in self._numbers
        except (ValueError, OverflowError):
            # No number at all: Gradio says so.
            return
        if not is_known:
            raise UnknownName("This page is of an earlier start of the server, which has changed since; load the page again.")

    @staticmethod
    async def _refuse(error: EngineError, scope: Scope, receive: Receive, send: Send) -> None:
        problem = problem_of(error)
        # The page's own client shows what stands under `detail`.
        response = problem.response()
        if _path(scope).startswith(PAGE_API):
            response.body = response.render({"detail": problem.message, **problem.body()})
            response.headers["content-length"] = str(len(response.body))
        await response(scope, receive, send)


class _Reply:
    """A response on its way, of which is known whether it has begun."""

    def __init__(self, send: Send) -> None:
        self._send, self.has_begun = send, False

    async def send(self, message: Message) -> None:
        """Sends one message on."""
        self.has_begun = True
        await self._send(message)


async def _unless(is_over: bool, reply: _Reply, message: Message) -> None:
    if not is_over or reply.has_begun:
        await reply.send(message)


class _Counted:
    """A request's body, of which the bytes are counted; it may be read ahead and is then given again."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most, self._num_bytes, self._ahead = receive, most, 0, list[Message]()

    @property
    def is_over(self) -> bool:
        """Whether more came than is read."""
        return self._num_bytes > self._most

    async def receive(self) -> Message:
        """Returns the next message. Raises TooLarge."""
        return self._ahead.pop(0) if self._ahead else await self._next()

    async def read(self) -> bytes:
        """Returns the whole body, which `receive` gives again. Raises TooLarge."""
        messages = [await self._next()]
        while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
            messages.append(await self._next())
        self._ahead = messages
        return b"".join(message.get("body", b"") for message in messages)

    async def _next(self) -> Message:
        message = await self._receive()
        self._num_bytes += len(message.get("body", b""))
        if self.is_over:
            raise too_large(self._most)
        return message


def _path(scope: Scope) -> str:
    """Returns the path below the one that the page stands under, which some proxies take away and others do not."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def too_large(most: int) -> TooLarge:
    """Returns the error of a request that is longer than `most` bytes."""
    return TooLarge(f"The request is larger than {most / MIB:g} MiB, which is the most that is read; send less.")


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
