"""The bundled scenarios: passages, questions and gold answers, read from JSON files. Knows no model."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.errors import UnknownName
from engine.types import Chunk, FusionRequest

SCENARIO_DIR = Path(__file__).resolve().parent.parent / "datasets" / "scenarios"
# What the page, the player's site and the tour open with: its first question is one on which methods come apart.
OPENING = "servo-manual"


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Support:
    """An exact substring of a passage that holds (a part of) the answer."""

    passage: str
    span: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold answers; `answerable` is False where no passage holds the answer."""

    id: str
    question: str
    answers: tuple[str, ...]
    hops: int
    answerable: bool
    supporting: tuple[Support, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A prepared set of passages with questions. Everything in it is fictional where `fictional` is set."""

    name: str
    title: str
    language: str
    description: str
    fictional: bool
    licence: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    def chunks(self) -> tuple[Chunk, ...]:
        """Returns the passages as chunks in their written order."""
        return tuple(Chunk(chunk_id=p.id, title=p.title, text=p.text) for p in self.passages)

    def question(self, text_or_id: str) -> Question | None:
        """Returns the prepared question with this id or wording, or None."""
        wanted = text_or_id.strip()
        return next((q for q in self.questions if wanted in (q.id, q.question)), None)

    def request(self, question: str, **settings: object) -> FusionRequest:
        """Returns a request over all passages, with gold answers where `question` (text or id) is a prepared one."""
        known = self.question(question)
        settings.setdefault("chunks", self.chunks())
        return FusionRequest(
            question=known.question if known else question,
            gold_answers=known.answers if known else (),
            supporting=tuple((s.passage, s.span) for s in known.supporting) if known else (),
            scenario=self.name,
            **settings,  # type: ignore[arg-type]
        )


def load_scenarios(folder: Path = SCENARIO_DIR) -> dict[str, Scenario]:
    """Returns all scenarios of a folder by name, in order of name. Raises msgspec.ValidationError on a bad file."""
    found = [msgspec.json.decode(path.read_bytes(), type=Scenario) for path in sorted(folder.glob("*.json"))]
    return {scenario.name: scenario for scenario in found}


def find_scenario(name: str, folder: Path = SCENARIO_DIR) -> Scenario:
    """Returns the scenario called `name`. Raises UnknownName, listing the known ones."""
    scenarios = load_scenarios(folder)
    if name not in scenarios:
        raise UnknownName(f"Unknown scenario {name!r}; known ones are: {', '.join(scenarios)}.")
    return scenarios[name]
