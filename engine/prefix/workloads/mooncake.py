"""Reads Mooncake traces: one request a line with chained block hashes of 512 tokens (kvcache-ai/Mooncake, FAST'25).

Fields: `timestamp` ms, `input_length`, `output_length` tokens, `hash_ids`; the last block may be partial. Sessions are guessed.
"""

from collections.abc import Callable
from pathlib import Path

from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.inference import SessionGuess
from engine.prefix.workloads.items import read_objects
from engine.prefix.workloads.lines import Clock, Line
from engine.prefix.workloads.workload import Workload

BLOCK_TOKENS = 512


def read_mooncake(path: Path, progress: Callable[[int], bool] | None = None) -> Workload:
    """Returns the workload of a trace. Raises BadRequest with file, line and reason, Cancelled."""
    builder, clock, guess = WorkloadBuilder(path.name, BLOCK_TOKENS), Clock(1000.0), SessionGuess()
    for line in read_objects(path, progress):
        time_s, num_tokens = clock.seconds(line, "timestamp"), line.tokens("input_length")
        ids = hash_ids(line)
        if len(set(ids)) != len(ids):
            raise line.broken("'hash_ids' names a block twice; ids must be chained, so that they name a prefix")
        blocks = builder.blocks(ids)
        if not (len(blocks) - 1) * BLOCK_TOKENS < num_tokens <= len(blocks) * BLOCK_TOKENS:
            raise line.broken(f"{len(blocks)} blocks of {BLOCK_TOKENS} tokens do not make a prompt of {num_tokens}")
        builder.add(Arrival(time_s, guess.session(blocks), num_tokens), blocks)
    return builder.build(("Sessions are guessed from prefixes; token types are not recorded and taken as user text.",))


def hash_ids(line: Line) -> list:
    """Returns the block hashes of a line. Raises BadRequest where they are no numbers or text."""
    ids = line.items("hash_ids")
    if any(isinstance(value, bool) or not isinstance(value, int | str) for value in ids):
        raise line.broken("'hash_ids' holds something that is neither a number nor a text")
    return ids
