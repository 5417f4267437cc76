"""Reads Azure LLM inference traces: arrivals and lengths alone (`TIMESTAMP, ContextTokens, GeneratedTokens`).

No content is recorded, so as a workload no two prompts share anything; as arrivals they time generated sessions.
"""

import csv
import datetime
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.errors import BadRequest, Cancelled
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.lines import MAX_TOKENS, UNREADABLE, open_text, unreadable
from engine.prefix.workloads.workload import Workload

BLOCK_TOKENS = 16
FIELDS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_REPORT_EVERY = 10_000


class AzureRow(NamedTuple):
    """One request: seconds since the first, prompt and answer lengths in tokens."""

    time_s: float
    num_tokens: int
    num_generated: int


def read_azure_rows(path: Path, progress: Callable[[int], bool] | None = None) -> Iterator[AzureRow]:
    """Yields the requests of a trace. Raises BadRequest with file, line and reason, Cancelled."""
    first: datetime.datetime | None = None
    last_s = 0.0
    with open_text(path) as file:
        rows = csv.DictReader(file, skipinitialspace=True)
        try:
            if rows.fieldnames is None or not set(FIELDS) <= set(rows.fieldnames):
                raise BadRequest(f"{path.name}, line 1: the columns {', '.join(FIELDS)} are needed, separated by commas.")
            for number, row in enumerate(rows, 2):
                if progress is not None and number % _REPORT_EVERY == 0 and not progress(number):
                    raise Cancelled(f"Stopped reading {path.name} at line {number:,}.")
                place = f"{path.name}, line {number}"
                stamp = _time(place, row[FIELDS[0]])
                first = first or stamp
                time_s = (stamp - first).total_seconds()
                if time_s < last_s:
                    raise BadRequest(f"{place}: time goes backwards; sort the log by time.")
                last_s = time_s
                yield AzureRow(time_s, *(_length(place, field, row[field]) for field in FIELDS[1:]))
        except (*UNREADABLE, csv.Error) as error:
            raise unreadable(f"{path.name}, line {rows.line_num + 1}", error) from None


def _time(place: str, text: str | None) -> datetime.datetime:
    """Returns a time. The logs of 2023 name no zone, those of 2024 do; both are UTC."""
    try:
        stamp = datetime.datetime.fromisoformat((text or "").strip())
    except ValueError:
        raise BadRequest(f"{place}: {FIELDS[0]} is {str(text)[:40]!r}; it must be a time such as 2023-11-16 18:15:46.68.") from None
    return stamp if stamp.tzinfo else stamp.replace(tzinfo=datetime.UTC)


def _length(place: str, field: str, text: str | None) -> int:
    # Nine digits hold every length that counts, and keep `int` from reading thousands.
    if not re.fullmatch(r"\s*\d{1,9}\s*", text or "", re.ASCII) or int(text) > MAX_TOKENS:
        raise BadRequest(f"{place}: {field} is {str(text)[:40]!r}; it must be a whole number from 0 to {MAX_TOKENS:,}.")
    return int(text)


def read_azure(path: Path, progress: Callable[[int], bool] | None = None) -> Workload:
    """Returns a workload of the recorded lengths in which no two prompts share a block. Raises BadRequest, Cancelled."""
    builder = WorkloadBuilder(path.name, BLOCK_TOKENS)
    for number, row in enumerate(read_azure_rows(path, progress)):
        prompt, total = row.num_tokens // BLOCK_TOKENS, (row.num_tokens + row.num_generated) // BLOCK_TOKENS
        builder.add(Arrival(row.time_s, number, row.num_tokens), builder.blocks([(number, i) for i in range(total)]), prompt)
    return builder.build(("The log holds lengths alone: no two prompts share a block, so nothing can be hit.",))


def azure_arrivals(path: Path) -> np.ndarray:
    """Returns the recorded arrivals float64 [n] in s, for generated sessions. Raises BadRequest."""
    return np.array([row.time_s for row in read_azure_rows(path)])
