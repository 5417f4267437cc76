"""Reads coding-agent sessions with block ids (kv-cache-tester, Weka), one JSON object a session, in full or delta-coded.

A session has `id, block_size, tool_tokens, system_tokens, requests`. Full requests are objects `t, in, out, hash_ids, input_types,
output_types, stop`; delta-coded ones lists `[t, type, model, in, out, keep, new, input_types, output_types, stop, think, api]`: `keep`
leading ids of the request before, then runs `[start, count]`. Sub-agents are requests with requests of their own. Ids are local to a
session; starts are not recorded and drawn. Blocks are joined to 512 tokens, as full prompts have hundreds of thousands.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.errors import Cancelled
from engine.prefix.blocks import TokenType
from engine.prefix.workloads.arrivals import poisson
from engine.prefix.workloads.builder import MAX_PATHS, Arrival, WorkloadBuilder
from engine.prefix.workloads.items import read_objects
from engine.prefix.workloads.lines import MAX_TOKENS, Line
from engine.prefix.workloads.stream import block_kinds
from engine.prefix.workloads.workload import Workload

JOINED_TOKENS, MEAN_START_GAP_S, MAX_SESSIONS = 512, 120.0, 120
MAX_RUN = 2**20
GoOn = Callable[[int], bool]
_TYPES = {"T": TokenType.USER, "R": TokenType.TOOL_OUTPUT, "K": TokenType.COT, "U": TokenType.RESPONSE}
_LONG_TYPES = {"text": "T", "tool_result": "R", "thinking": "K", "tool_use": "U"}


class AgentRequest(NamedTuple):
    """One request of a session: time within it, lengths in tokens, block ids, types of what came in and went out."""

    time_s: float
    num_tokens: int
    num_answer: int
    ids: list[int]
    input_types: str
    output_types: str
    stop: str


def read_agent_sessions(path: Path, seed: int, max_sessions: int = MAX_SESSIONS, progress: GoOn | None = None) -> Workload:
    """Returns the workload of the first sessions of a file, started by a Poisson process. Raises BadRequest, Cancelled."""
    builder = WorkloadBuilder(path.name, JOINED_TOKENS)
    starts = poisson(MEAN_START_GAP_S)(np.random.default_rng(seed))
    known: set[str] = set()
    for number, line in enumerate(read_objects(path, progress)):
        if number >= max_sessions:
            break
        name = str(line.value.get("id", number))
        if name in known:
            raise line.broken(f"the session {name[:40]!r} comes twice; ids must differ")
        known.add(name)
        _add_session(builder, line, name, next(starts), progress)
    notes = (
        f"The first {min(max_sessions, len(known))} sessions, one started every {MEAN_START_GAP_S:g} s on average (drawn, seed {seed}).",
        "Token types are worked out from the recorded kinds of what came in and went out.",
    )
    return builder.build(notes)


def _add_session(builder: WorkloadBuilder, line: Line, name: str, start_s: float, progress: GoOn | None) -> None:
    size = int(line.number("block_size", least=1.0))
    if JOINED_TOKENS % size:
        raise line.broken(f"'block_size' is {size}; it must divide {JOINED_TOKENS}")
    for agent, offset_s, head_tokens, requests in _threads(line, name, _head(line, line.value)):
        kinds = np.zeros(head_tokens, np.uint8)
        answer = ""
        answered = 0
        for request in requests:
            # One session can be thousands of requests over millions of tokens.
            if progress is not None and not progress(len(builder)):
                raise Cancelled(f"Stopped reading {line.place}.")
            kinds = _typed(kinds, request, answer, answered)
            # The last id may be of a block that the prompt does not fill.
            joined = request.ids[JOINED_TOKENS // size - 1 :: JOINED_TOKENS // size][: len(kinds) // JOINED_TOKENS]
            blocks = builder.blocks([(name, number) for number in joined], block_kinds(kinds, JOINED_TOKENS))
            waits = request.stop == "tool_use"
            builder.add(Arrival(start_s + offset_s + request.time_s, agent, request.num_tokens, True, waits), blocks)
            answer, answered = request.output_types, request.num_answer


def _threads(line: Line, name: str, head: int) -> Iterator[tuple[str, float, int, list[AgentRequest]]]:
    """Yields the main thread of a session and its sub-agents: name, start within the session, shared head, requests."""
    main, subs = [], []
    for raw in line.items("requests"):
        if isinstance(raw, list) and raw and raw[0] == "sub":
            if len(raw) < 6:
                raise line.broken(f"a sub-agent has {len(raw)} fields; it must have 6, its requests the last")
            tokens = [int(line.checked("tokens of a sub-agent", value, most=MAX_TOKENS)) for value in raw[2:4]]
            subs.append((line.checked("t of a sub-agent", raw[1]), sum(tokens), raw[5]))
        elif isinstance(raw, dict) and raw.get("type") == "subagent":
            subs.append((line.checked("t of a sub-agent", raw.get("t", 0.0)), _head(line, raw), raw.get("requests") or []))
        else:
            main.append(raw)
    yield name, 0.0, head, _requests(line, main)
    for number, (time_s, tokens, raw) in enumerate(subs):
        yield f"{name}/{number}", time_s, tokens, _requests(line, raw)


def _head(line: Line, raw: dict) -> int:
    """Returns the tokens that a session or sub-agent begins with."""
    return sum(int(line.checked(name, raw.get(name) or 0, most=MAX_TOKENS)) for name in ("tool_tokens", "system_tokens"))


def _requests(line: Line, raw: list) -> list[AgentRequest]:
    found: list[AgentRequest] = []
    ids: list[int] = []
    num_ids = 0
    try:
        for item in raw:
            if isinstance(item, dict):
                ids = list(item["hash_ids"])
                types = ["".join(_LONG_TYPES[name] for name in item.get(field, ())) for field in ("input_types", "output_types")]
                found.append(_request(line, item["t"], (item["in"], item["out"]), ids, types, item.get("stop", "")))
            else:
                time_s, _, _, num_tokens, num_answer, keep, new, came, went, stop, *_ = item
                ids = ids[:keep] + [number for start, count in new for number in _run(line, start, count)]
                found.append(_request(line, time_s, (num_tokens, num_answer), ids, (came, went), stop))
            num_ids += len(ids)
            if num_ids > MAX_PATHS:
                raise line.broken(f"a session names more than {MAX_PATHS:,} blocks in its requests; split it")
    except (KeyError, TypeError, ValueError) as error:
        raise line.broken(f"request {len(found)} of a session is not understood ({type(error).__name__}: {str(error)[:60]})") from None
    bad = set("".join(request.input_types + request.output_types for request in found)) - set(_TYPES)
    if bad:
        raise line.broken(f"unknown types {''.join(sorted(bad))[:20]!r}; known ones are: {', '.join(_TYPES)}")
    return found


def _run(line: Line, start: int, count: int) -> range:
    """Returns the block ids of a run."""
    return range(start, start + int(line.checked("count of a run of blocks", count, most=MAX_RUN)))


def _request(line: Line, time_s: Any, tokens: tuple[Any, Any], ids: list, types: Sequence[str], stop: Any) -> AgentRequest:
    num_tokens, num_answer = (int(line.checked(name, value, most=MAX_TOKENS)) for name, value in zip(("in", "out"), tokens, strict=True))
    if any(isinstance(number, bool) or not isinstance(number, int | str) for number in ids):
        raise line.broken("a session's block ids hold something that is neither a number nor a text")
    if not all(isinstance(text, str) for text in types):
        raise line.broken(f"a request's types are {str(list(types))[:40]}; each must be a text of {', '.join(_TYPES)}")
    return AgentRequest(line.checked("t", time_s), num_tokens, num_answer, ids, *types, str(stop))


def _typed(kinds: np.ndarray, request: AgentRequest, answer: str, answered: int) -> np.ndarray:
    """Returns token types of a request's prompt: those before, then the answer before it, then what came in, in equal parts."""
    if request.num_tokens <= len(kinds):
        return kinds[: request.num_tokens]
    new = request.num_tokens - len(kinds)
    said = min(answered, new)
    parts = [kinds, *_shares(said, answer, in_answer=True), *_shares(new - said, request.input_types, in_answer=False)]
    return np.concatenate(parts)


def _shares(num_tokens: int, types: str, in_answer: bool) -> list[np.ndarray]:
    """Returns equal stretches of the types of a message, thinking first; text of an answer is a response, not a user's."""
    if not num_tokens:
        return []
    kinds = [TokenType.RESPONSE if in_answer and name == "T" else _TYPES[name] for name in sorted(types, key="KTRU".index)]
    kinds = kinds or [TokenType.RESPONSE if in_answer else TokenType.USER]
    cuts = np.linspace(0, num_tokens, len(kinds) + 1).astype(int)
    return [np.full(stop - start, kind, np.uint8) for kind, start, stop in zip(kinds, cuts, cuts[1:], strict=False)]
