"""Reads Qwen-Bailian traces (alibaba-edu): one request a line with chained block hashes of 16 tokens and its place in a chat.

Fields: `chat_id`, `parent_chat_id` (-1 for the first), `timestamp` s, `input_length`, `output_length`, `type`, `turn`, `hash_ids`.
Ids are those of blocks by themselves, so one may come twice in a prompt.
"""

import re
from collections.abc import Callable
from pathlib import Path

from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.items import read_objects
from engine.prefix.workloads.lines import MAX_TOKENS, Clock
from engine.prefix.workloads.mooncake import hash_ids
from engine.prefix.workloads.workload import Workload

BLOCK_TOKENS = 16
# The to-B, thinking and coder traces name kinds of their own, which the description of the fields leaves out.
TYPES = ("text", "search", "image", "file", "api", "thinking", "coder")


def read_bailian(path: Path, progress: Callable[[int], bool] | None = None) -> Workload:
    """Returns the workload of a trace; the block size is that of the name (blksz_N), else 16. Raises BadRequest, Cancelled."""
    named = re.search(r"blksz_(\d+)", path.name)
    builder, clock = WorkloadBuilder(path.name, int(named[1]) if named else BLOCK_TOKENS), Clock(1.0)
    chat_of: dict[float, float] = {}
    for line in read_objects(path, progress):
        time_s, chat = clock.seconds(line, "timestamp"), line.number("chat_id", least=-1.0)
        if chat in chat_of:
            raise line.broken(f"'chat_id' {chat:g} was used by an earlier line; every request needs its own")
        if line.value.get("type") not in TYPES:
            raise line.broken(f"'type' is {line.value.get('type')!r}; known ones are: {', '.join(TYPES)}")
        parent = line.number("parent_chat_id", least=-1.0)
        chat_of[chat] = chat_of.get(parent, parent) if parent >= 0 else chat
        turn = int(line.number("turn", least=1.0, most=MAX_TOKENS)) - 1
        builder.add(Arrival(time_s, chat_of[chat], line.tokens("input_length"), turn=turn), builder.blocks(hash_ids(line)))
    return builder.build(("Token types are not recorded and taken as user text.",))
