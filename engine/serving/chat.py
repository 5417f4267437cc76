"""`/v1/chat/completions`: a body becomes a turn of the engine's conversation, its events become an answer or a stream."""

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from engine.chat.types import ChatRequest, ChatStatus, ChatToken, ChatTurn
from engine.errors import EngineError
from engine.serving import tools
from engine.serving.answers import LAST_EVENT, Heading, comment, event, extras_of, no_usage, usage_of
from engine.serving.bridge import Stopped, flowing
from engine.serving.clients import Client
from engine.serving.conversation import Conversation, conversation_of
from engine.serving.door import Door
from engine.serving.passages import Passages, passages
from engine.serving.problems import problem_of
from engine.serving.schema import ChatBody
from engine.serving.stops import StopFilter
from engine.types import Chunk

Event = Passages | ChatStatus | ChatToken | ChatTurn
CLIENT_GONE = 499


@dataclass(slots=True)
class Heard:
    """What was heard of an answer so far.

    Args:
        wait_s: from arrival until its turn came, None before that. num_ahead: requests before it while it waits.
    """

    stops: StopFilter
    arrived_s: float = field(default_factory=time.monotonic)
    found: Passages = field(default_factory=lambda: Passages(()))
    wait_s: float | None = None
    num_ahead: int = 0
    turn: ChatTurn | None = None

    def hear(self, item: Event) -> str:
        """Takes an event and returns the text that may be shown."""
        if isinstance(item, Passages):
            self.found = item
            return ""
        self.num_ahead = item.queue_position if isinstance(item, ChatStatus) else 0
        if self.wait_s is None and not self.num_ahead:
            self.wait_s = time.monotonic() - self.arrived_s
        if isinstance(item, ChatTurn):
            self.turn = item
        return self.stops.feed(item.text) if isinstance(item, ChatToken) else ""

    @property
    def state(self) -> str:
        """Returns what the request is doing, in a few words of ours."""
        return f"waiting, {self.num_ahead} ahead" if self.num_ahead else "working"

    @property
    def finish(self) -> str:
        """Returns why the answer ended."""
        assert self.turn is not None, "the answer has ended"
        return "stop" if self.stops.hit else self.turn.finish


class ChatRoutes:
    """Answers questions over documents."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.router = APIRouter()
        self.router.add_api_route("/chat/completions", self.create, methods=["POST"], response_model=None)

    async def create(self, request: Request, body: ChatBody) -> Response:
        """Answers the last message of a conversation, over the documents that the body names or has searched."""
        client = self._door.admit(request)
        self._door.quotas.check(client, "tokens")
        heading = Heading.new(self._door.check_model(body.model), body.tells_usage)
        talk = conversation_of(body.messages)
        if tools.wants_call(body):
            return _called(heading, talk, body)
        events = flowing(lambda stopped: self._events(body, talk, client, stopped), request, self._door.executor)
        heard = Heard(StopFilter(body.stops))
        # Errors that come before anything else still have a status of their own.
        begun = await _first(events, heard)
        if not begun:
            return Response(status_code=CLIENT_GONE)
        if body.stream:
            return StreamingResponse(
                self._stream(events, heard, heading, body, client), media_type="text/event-stream", headers=_UNBUFFERED
            )
        text = "".join([heard.hear(item) async for item in events if item is not None]) + heard.stops.rest()
        if heard.turn is None:
            return Response(status_code=CLIENT_GONE)
        message = {"content": text}
        return JSONResponse(heading.completion(message, heard.finish, self._used(heard.turn, client), _extras(heard, body)))

    async def _stream(
        self, events: AsyncIterator[Event | None], heard: Heard, heading: Heading, body: ChatBody, client: Client
    ) -> AsyncIterator[bytes]:
        # Told with the first piece of text: clients take the time of the first event for that of the first token.
        opening = [event(heading.delta({"role": "assistant", "content": ""}))]
        try:
            async for item in events:
                if item is None:
                    yield comment(heard.state)
                elif text := heard.hear(item):
                    yield b"".join(opening) + event(heading.delta({"content": text}))
                    opening.clear()
        except EngineError as error:
            yield event(problem_of(error).body())
            return
        if heard.turn is None:
            return
        if rest := heard.stops.rest():
            opening.append(event(heading.delta({"content": rest})))
        yield b"".join(opening) + event(heading.delta({}, heard.finish, _extras(heard, body)))
        usage = self._used(heard.turn, client)
        if body.tells_usage:
            yield event(heading.usage(usage))
        yield LAST_EVENT

    def _events(self, body: ChatBody, talk: Conversation, client: Client, stopped: Stopped) -> Iterator[Event]:
        """Yields the passages of a request and then what the engine does with them."""
        found = passages(self._door.session.library, client.owner, talk.question, body.documents, body.fusion)
        found = Passages(_each_once((*talk.chunks, *found.chunks)), found.notices)
        request = ChatRequest(
            messages=talk.messages,
            chunks=found.chunks,
            method=body.fusion.method,
            ratio=body.fusion.ratio,
            chunk_context=body.fusion.chunk_context,  # type: ignore[arg-type]
            max_new_tokens=body.num_tokens,
            temperature=body.temperature or 0.0,
            seed=body.seed or 0,
            conversation=talk.name(client.owner),
            stops=body.stops,
        )
        yield found
        yield from self._door.session.chat(request, stopped)

    def _used(self, turn: ChatTurn, client: Client) -> dict[str, object]:
        usage = usage_of(turn)
        self._door.quotas.settle(client, "tokens", usage["total_tokens"])
        return usage


_UNBUFFERED = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


async def _first(events: AsyncIterator[Event | None], heard: Heard) -> bool:
    """Hears events until the engine has taken the request; False where the client went before that."""
    async for item in events:
        if item is None:
            continue
        heard.hear(item)
        if not isinstance(item, Passages):
            return True
    return False


def _called(heading: Heading, talk: Conversation, body: ChatBody) -> Response:
    """Returns the forced call of the search, whole or as a stream; the model is not run."""
    call, extras = tools.search_call(talk.question), {"notices": [tools.BY_RULE]}
    if not body.stream:
        return JSONResponse(heading.completion({"content": None, "tool_calls": [call]}, "tool_calls", no_usage(), extras))
    parts = [heading.delta({"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]})]
    parts.append(heading.delta({}, "tool_calls", extras))
    if body.tells_usage:
        parts.append(heading.usage(no_usage()))
    return Response(b"".join(map(event, parts)) + LAST_EVENT, media_type="text/event-stream")


def _extras(heard: Heard, body: ChatBody) -> dict[str, object]:
    assert heard.turn is not None, "the answer has ended"
    return extras_of(heard.turn, heard.found.chunks, heard.wait_s or 0.0, (*heard.found.notices, *tools.notices(body)))


def _each_once(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    return tuple({chunk.chunk_id: chunk for chunk in reversed(chunks)}.values())[::-1]
