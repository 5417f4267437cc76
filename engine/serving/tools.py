"""The one tool that is understood here, `search_documents`: called when the client forces it, never by choice of the model.

A model of this size does not choose tools, and nothing pretends that it does: the query of a forced call is the question itself.
"""

import json
from uuid import uuid4

from engine.serving.problems import WrongField
from engine.serving.schema import RETRIEVAL_TOOL, ChatBody, ToolChoice

BY_RULE = f"The call of {RETRIEVAL_TOOL} was forced by the request; its query is the question as it stands, the model wrote nothing."
NOT_CHOSEN = (
    f"The model does not choose tools by itself, so none was called; force {RETRIEVAL_TOOL} by `tool_choice`, "
    "or set `fusion.retrieve` to have documents searched."
)


def wants_call(body: ChatBody) -> bool:
    """Whether the answer is to be a call of the search, because the client forces it and no result is there yet.

    Raises WrongField where another function is forced, or the search is not among the tools.
    """
    choice = body.tool_choice
    if choice in (None, "none", "auto") or body.messages[-1].role == "tool":
        return False
    names = [tool.function.name for tool in body.tools or ()]
    forced = choice.function.name if isinstance(choice, ToolChoice) else RETRIEVAL_TOOL
    if forced != RETRIEVAL_TOOL or RETRIEVAL_TOOL not in names:
        raise WrongField(
            "tool_choice",
            f"Only the function {RETRIEVAL_TOOL!r} can be forced here, and it must be among `tools`; the model does not write other calls.",
        )
    return True


def notices(body: ChatBody) -> tuple[str, ...]:
    """Returns what is to be said about tools that were on offer and not called."""
    offered = bool(body.tools) and body.tool_choice != "none" and body.messages[-1].role != "tool"
    return (NOT_CHOSEN,) if offered else ()


def search_call(question: str) -> dict[str, object]:
    """Returns the call, in OpenAI's form."""
    arguments = json.dumps({"query": question}, ensure_ascii=False)
    return {"id": f"call_{uuid4().hex[:24]}", "type": "function", "function": {"name": RETRIEVAL_TOOL, "arguments": arguments}}
