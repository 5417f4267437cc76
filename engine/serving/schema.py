"""What a body of `/v1/chat/completions` may hold. Unknown fields are refused: nothing that was asked for is passed over in silence.

Field names are those of OpenAI's API reference (Chat Completions, 2025); `documents` and `fusion` are ours.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_MESSAGES, MAX_DOCUMENTS, MAX_TEXT_CHARS = 200, 64, 200_000
MAX_STOPS, MAX_STOP_CHARS = 16, 200
RETRIEVAL_TOOL = "search_documents"


# Bounded texts are looked through: half a character (a lone surrogate) is refused.
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
# pydantic would take true and "1" for 1.
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
StopText = Annotated[str, Field(max_length=MAX_STOP_CHARS)]


class Strict(BaseModel):
    """A part of a body that takes only the fields it names, of their own JSON types."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TextPart(Strict):
    """One part of a message; only text is read."""

    type: Literal["text"]
    text: Text


class CalledFunction(Strict):
    """Name and arguments (JSON as text) of a call."""

    name: str = Field(max_length=64)
    arguments: str = Field(max_length=MAX_TEXT_CHARS)


class ToolCall(Strict):
    """A call that an earlier answer asked for."""

    id: str = Field(max_length=100)
    type: Literal["function"] = "function"
    function: CalledFunction


class Message(Strict):
    """One message of a conversation; `content` is text or a list of text parts, null only where tools were called."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | list[TextPart] | None = Field(default=None, union_mode="left_to_right")
    name: str | None = Field(default=None, max_length=64)
    refusal: None = None
    annotations: list[Any] | None = Field(default=None, max_length=0)
    audio: None = None
    function_call: None = None
    tool_calls: list[ToolCall] | None = Field(default=None, max_length=8)
    tool_call_id: str | None = Field(default=None, max_length=100)

    @property
    def text(self) -> str:
        """Returns the content as one text."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class FunctionSpec(Strict):
    """What a client tells about a function; only its name is used."""

    name: str = Field(max_length=64)
    description: str | None = Field(default=None, max_length=4_000)
    parameters: dict[str, Any] | None = None
    strict: Flag | None = None


class Tool(Strict):
    """A tool on offer."""

    type: Literal["function"]
    function: FunctionSpec


class FunctionName(Strict):
    """Names a function."""

    name: str = Field(max_length=64)


class ToolChoice(Strict):
    """Forces one function."""

    type: Literal["function"]
    function: FunctionName


class StreamOptions(Strict):
    """What a stream carries beside the text."""

    include_usage: Flag | None = None
    include_obfuscation: Flag | None = None


class InlineDocument(Strict):
    """A passage in the body itself: one chunk, as it stands."""

    title: str = Field(default="", max_length=500)
    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    id: str | None = Field(default=None, max_length=100)


class Fusion(Strict):
    """How the documents' KV caches are reused.

    Args:
        method: of `engine.fusion`, "full" computes everything exactly.
        ratio: share of the document tokens that is recomputed, 0..1; 1 gives the answer of "full".
        retrieve: how many chunks are searched for with the question; None takes the named documents whole.
        library: where to search, by id or name.
    """

    method: str = Field(default="qcfuse", max_length=80)
    ratio: Number = Field(default=0.3, ge=0, le=1)
    chunk_context: str = Field(default="system", max_length=20)
    retrieve: Whole | None = Field(default=None, ge=1, le=MAX_DOCUMENTS)
    library: str | None = Field(default=None, max_length=200)


class ChatBody(Strict):
    """The whole body."""

    model: str = Field(max_length=200)
    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: Flag | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Whole | None = Field(default=None, ge=1, le=512)
    max_completion_tokens: Whole | None = Field(default=None, ge=1, le=512)
    temperature: Number | None = Field(default=None, ge=0, le=2)
    seed: Whole | None = Field(default=None, ge=0, lt=2**63)
    stop: StopText | Annotated[list[StopText], Field(max_length=MAX_STOPS)] | None = None
    tools: list[Tool] | None = Field(default=None, max_length=16)
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    documents: list[str | InlineDocument] = Field(default=[], max_length=MAX_DOCUMENTS)
    fusion: Fusion = Fusion()

    # These would change the answer: only the value that changes nothing is taken.
    n: Literal[1] | None = None
    top_p: Literal[1] | None = None
    presence_penalty: Literal[0] | None = None
    frequency_penalty: Literal[0] | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None
    logit_bias: dict[str, float] | None = Field(default=None, max_length=0)
    response_format: dict[Literal["type"], Literal["text"]] | None = None
    modalities: list[Literal["text"]] | None = None
    # These change nothing here.
    user: str | None = Field(default=None, max_length=500)
    metadata: dict[str, str] | None = Field(default=None, max_length=16)
    store: Literal[False] | None = None
    parallel_tool_calls: Flag | None = None

    @property
    def num_tokens(self) -> int:
        """Returns the most tokens of an answer."""
        return self.max_completion_tokens or self.max_tokens or 128

    @property
    def tells_usage(self) -> bool:
        """Whether a stream is to tell its usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def stops(self) -> tuple[str, ...]:
        """Returns the texts that end an answer."""
        if self.stop is None:
            return ()
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)


class SearchBody(Strict):
    """The body of `/v1/documents/search`."""

    query: str = Field(min_length=1, max_length=4_000)
    num: int = Field(default=4, ge=1, le=MAX_DOCUMENTS)
    documents: list[str] | None = Field(default=None, max_length=MAX_DOCUMENTS)
    library: str | None = Field(default=None, max_length=200)
