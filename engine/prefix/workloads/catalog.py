"""Finds a workload by name: a generated one, or a log whose format is told from its first object."""

from collections.abc import Callable
from pathlib import Path

from engine.errors import BadRequest
from engine.prefix.workloads.agent_sessions import read_agent_sessions
from engine.prefix.workloads.arrivals import Arrivals
from engine.prefix.workloads.azure import FIELDS, read_azure
from engine.prefix.workloads.bailian import read_bailian
from engine.prefix.workloads.chats import Tokenize, read_chats
from engine.prefix.workloads.generate import MIXTURES, generate
from engine.prefix.workloads.items import read_items
from engine.prefix.workloads.lines import UNREADABLE, open_text, parse_json, unreadable
from engine.prefix.workloads.mooncake import read_mooncake
from engine.prefix.workloads.workload import Workload

_PEEK_CHARS = 1 << 20


def workload_names() -> tuple[str, ...]:
    """Returns the names of generated workloads."""
    return tuple(MIXTURES)


def is_generated(name: str) -> bool:
    """Whether a name is a generated workload's, not a path."""
    return name in MIXTURES


def load_workload(
    name: str,
    seed: int,
    arrivals: Arrivals | None = None,
    tokenize: Tokenize | None = None,
    progress: Callable[[int], bool] | None = None,
) -> Workload:
    """Returns a generated workload by name, or that of a log by path, without predictions. Raises BadRequest, Cancelled."""
    if is_generated(name):
        return generate(name, seed, arrivals)
    path = Path(name)
    if path.is_absolute() and not path.is_file():
        # The path of an upload says nothing to who sent it.
        raise BadRequest(
            f"The log {path.name!r} is not there (any more): check its path, or open it again, as uploads are kept for an hour."
        )
    if not path.is_file():
        raise BadRequest(f"{name!r} is neither a log nor a generated workload; the generated ones are: {', '.join(MIXTURES)}.")
    return _READERS[log_format(path)](path, seed, tokenize, progress)


def log_format(path: Path) -> str:
    """Returns which format a log has, told from its first object. Raises BadRequest where it is none that is known."""
    with open_text(path) as file:
        try:
            # Empty lines are passed over, as they are when the log is read.
            start = next((text for line in iter(lambda: file.readline(_PEEK_CHARS), "") if (text := line.strip())), "")
        except UNREADABLE as error:
            raise unreadable(f"{path.name}, line 1", error) from None
    if not start:
        raise BadRequest(f"{path.name} is empty; choose a log that holds requests.")
    if start.startswith("["):
        first = next(read_items(path), None)
        if first is None:
            raise BadRequest(f"{path.name} is an empty array; choose a log that holds requests.")
        return _format_of(first.place, first.value)
    if not start.startswith("{") and FIELDS[0] in start:
        return "azure"
    return _json_format(path, start)


def _json_format(path: Path, start: str) -> str:
    if len(start) >= _PEEK_CHARS:
        # A first line this long is one whole agent session; its fields stand in front.
        return "agent_sessions" if '"block_size"' in start else "chats"
    return _format_of(f"{path.name}, line 1", parse_json(f"{path.name}, line 1", start))


def _format_of(place: str, first: object) -> str:
    fields = first.keys() if isinstance(first, dict) else ()
    for known, needed in _FIELDS.items():
        if needed <= set(fields):
            return known
    raise BadRequest(f"{place}: the fields are those of no known format; known ones are: {', '.join(_READERS)}.")


_FIELDS = {
    "bailian": {"chat_id", "parent_chat_id", "hash_ids"},
    "mooncake": {"timestamp", "input_length", "hash_ids"},
    "agent_sessions": {"block_size", "requests"},
    "chats": {"messages"},
    "chats (ShareGPT)": {"conversations"},
    "chats (tau-bench)": {"traj"},
    "chats (LMCache)": {"input", "output", "session_id"},
}
_READERS: dict[str, Callable[[Path, int, Tokenize | None, Callable[[int], bool] | None], Workload]] = {
    "azure": lambda path, seed, tokenize, progress: read_azure(path, progress),
    "bailian": lambda path, seed, tokenize, progress: read_bailian(path, progress),
    "mooncake": lambda path, seed, tokenize, progress: read_mooncake(path, progress),
    "agent_sessions": lambda path, seed, tokenize, progress: read_agent_sessions(path, seed, progress=progress),
    **{
        name: lambda path, seed, tokenize, progress: read_chats(path, seed, tokenize, progress)
        for name in ("chats", "chats (ShareGPT)", "chats (tau-bench)", "chats (LMCache)")
    },
}
