"""The primer: a neutral text that stands in for whatever documents will come before a chunk (ours, beyond the papers)."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

PRIMER_DIR = Path(__file__).resolve().parents[2] / "assets" / "primers"


@dataclass(frozen=True, slots=True)
class Primer:
    """A candidate by name; its text ends as a chunk's does, so that what follows it is tokenised apart."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PrimerChoice:
    """Which candidate is used, and why. `by_model` overrides `chosen` for models it was measured on."""

    chosen: str
    note: str
    by_model: dict[str, str] = field(default_factory=dict)


def primers() -> tuple[Primer, ...]:
    """Returns all candidates, by name."""
    return tuple(Primer(path.stem, path.read_text(encoding="utf-8")) for path in sorted(PRIMER_DIR.glob("*.txt")))


def find_primer(model: str, name: str = "") -> Primer:
    """Returns the primer chosen for a model, or the candidate of a name."""
    choice = msgspec.json.decode((PRIMER_DIR / "choice.json").read_bytes(), type=PrimerChoice)
    wanted = name or choice.by_model.get(model, choice.chosen)
    return next(primer for primer in primers() if primer.name == wanted)
