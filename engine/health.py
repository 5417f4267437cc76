"""Whether a process can answer: the state of its model."""

from dataclasses import dataclass
from typing import Literal

HealthState = Literal["idle", "loading", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the model is there: not asked for yet, loading, ready, or failed; its name once it is ready, and one line."""

    state: HealthState
    model: str | None
    line: str
