"""Finds a workload by name: a generated one, or a log whose format is told from its first line."""

import json
from collections.abc import Callable
from pathlib import Path

from engine.errors import BadRequest
from engine.prefix.workloads.agent_sessions import read_agent_sessions
from engine.prefix.workloads.arrivals import Arrivals
from engine.prefix.workloads.azure import read_azure
from engine.prefix.workloads.bailian import read_bailian
from engine.prefix.workloads.chats import Tokenize, read_chats
from engine.prefix.workloads.generate import MIXTURES, generate
from engine.prefix.workloads.lines import open_text
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
    if not path.is_file():
        raise BadRequest(f"{name!r} is neither a log nor a generated workload; the generated ones are: {', '.join(MIXTURES)}.")
    return _READERS[log_format(path)](path, seed, tokenize, progress)


def log_format(path: Path) -> str:
    """Returns which format a log has, told from its first line. Raises BadRequest where it is none that is known."""
    with open_text(path) as file:
        try:
            start = file.readline(_PEEK_CHARS).strip()
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise BadRequest(f"{path.name}, line 1: cannot be read ({str(error)[:100]}).") from None
    if not start:
        raise BadRequest(f"{path.name} is empty; choose a log that holds requests.")
    if start.startswith("TIMESTAMP"):
        return "azure"
    if start.startswith("["):
        return "chats"
    return _json_format(path, start)


def _json_format(path: Path, start: str) -> str:
    if len(start) >= _PEEK_CHARS:
        # A first line this long is one whole agent session; its fields stand in front.
        return "agent_sessions" if '"block_size"' in start else "chats"
    try:
        first = json.loads(start)
    except json.JSONDecodeError as error:
        raise BadRequest(f"{path.name}, line 1: is not JSON ({error.msg}).") from None
    fields = first.keys() if isinstance(first, dict) else ()
    for known, needed in _FIELDS.items():
        if needed <= set(fields):
            return known
    raise BadRequest(f"{path.name}, line 1: the fields are those of no known format; known ones are: {', '.join(_READERS)}.")


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
