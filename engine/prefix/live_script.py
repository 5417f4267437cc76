"""Sessions of a live run, drawn from the texts in `datasets/sessions` by seed: chats, agents, templates and questions over passages.

A script is written once and told many times: names, towns and numbers in braces are drawn anew for every session, so that two
sessions share their system text and little else. Gaps between turns follow the fits that generated workloads use. Knows no model.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from engine.prefix.roles import Message
from engine.prefix.workloads.arrivals import poisson
from engine.prefix.workloads.sessions import AGENT_GAP, CHAT_GAP
from engine.scenarios import Passage, Question, Scenario, load_scenarios

SESSIONS_DIR = Path(__file__).resolve().parents[2] / "datasets" / "sessions"
SHARES = {"chat": 0.35, "agent": 0.15, "template": 0.25, "rag": 0.25}
LEAST_GAP_S, MOST_GAP_S, SECOND_QUESTION = 0.5, 3_600.0, 0.5
_SLOT = re.compile(r"\{(\w+)\}")


class Setting(msgspec.Struct, frozen=True):
    """What sessions have in common: the system text, and for agents the schemas of their tools."""

    name: str
    system: str
    tools: str = ""


class ScriptTurn(msgspec.Struct, frozen=True):
    """What is said, by a person or a tool, and the answer."""

    answer: str
    user: str = ""
    tool: str = ""


class Script(msgspec.Struct, frozen=True):
    """A session's turns behind a setting."""

    name: str
    setting: str
    turns: tuple[ScriptTurn, ...]


class ScriptFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of `datasets/sessions`; those of the kind "rag" name scenarios instead of scripts."""

    kind: str
    fictional: bool
    licence: str
    settings: tuple[Setting, ...]
    scripts: tuple[Script, ...] = ()
    scenarios: tuple[str, ...] = ()
    num_passages: tuple[int, int] = (0, 0)


class SlotFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands in for a name in braces."""

    fictional: bool
    licence: str
    slots: dict[str, tuple[str, ...]]


class Turn(NamedTuple):
    """One request: seconds since the session's one before, what its prompt gains, the answer."""

    gap_s: float
    asks: Message
    answer: str


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it is told: its kind, its script's or scenario's name, the seconds of its start, what stands before the first turn."""

    kind: str
    name: str
    start_s: float
    opening: tuple[Message, ...]
    turns: tuple[Turn, ...]

    @property
    def is_agent(self) -> bool:
        """Returns whether it has tools."""
        return any(message.role == "tools" for message in self.opening)


class Storyteller:
    """Draws sessions without end; the same seed tells the same ones.

    Args:
        mean_gap_s: between starts of sessions.
        shares: of the kinds.
    """

    def __init__(self, seed: int, mean_gap_s: float, shares: Mapping[str, float] = SHARES) -> None:
        self._rng = np.random.default_rng([seed, *b"live"])
        self._starts = poisson(mean_gap_s)(self._rng)
        self._kinds, weights = list(shares), np.array(list(shares.values()), np.float64)
        self._weights = weights / weights.sum()
        self._files = {file.kind: file for file in load_script_files()}
        self._slots = load_slots()
        self._scenarios = load_scenarios()

    def __iter__(self) -> Iterator[Session]:
        return self

    def __next__(self) -> Session:
        """Returns the session that starts next."""
        start_s = next(self._starts)
        kind = self._kinds[int(self._rng.choice(len(self._kinds), p=self._weights))]
        file = self._files[kind]
        return self._over_passages(file, start_s) if file.scenarios else self._scripted(file, start_s)

    def _scripted(self, file: ScriptFile, start_s: float) -> Session:
        script = file.scripts[int(self._rng.integers(len(file.scripts)))]
        setting = next(setting for setting in file.settings if setting.name == script.setting)
        slots = {name: values[int(self._rng.integers(len(values)))] for name, values in self._slots.items()}
        slots["number"] = str(self._rng.integers(1_000, 10_000))
        turns = []
        for i, turn in enumerate(script.turns):
            asks = Message("tool", turn.tool) if turn.tool else Message("user", turn.user)
            gap_s = self._gap(AGENT_GAP if turn.tool else CHAT_GAP) if i else 0.0
            turns.append(Turn(gap_s, asks._replace(text=_filled(asks.text, slots)), _filled(turn.answer, slots)))
        return Session(file.kind, script.name, start_s, _opening(setting), tuple(turns))

    def _over_passages(self, file: ScriptFile, start_s: float) -> Session:
        """Returns a question over passages in a random order, those that hold its answer among them, and maybe a second one."""
        scenario = self._scenarios[file.scenarios[int(self._rng.integers(len(file.scenarios)))]]
        first, second = (scenario.questions[i] for i in self._rng.permutation(len(scenario.questions))[:2])
        num = int(self._rng.integers(file.num_passages[0], file.num_passages[1] + 1))
        text = "\n\n".join(f"{passage.title}: {passage.text}" for passage in self._passages(scenario, first, num))
        asked = Message("user", f"{text}\n\nQuestion: {first.question}")
        turns = [Turn(0.0, asked, first.answers[0])]
        if self._rng.random() < SECOND_QUESTION:
            turns.append(Turn(self._gap(CHAT_GAP), Message("user", f"Question: {second.question}"), second.answers[0]))
        return Session(file.kind, scenario.name, start_s, _opening(file.settings[0]), tuple(turns))

    def _passages(self, scenario: Scenario, question: Question, num: int) -> list[Passage]:
        supporting = {support.passage for support in question.supporting}
        held = [passage for passage in scenario.passages if passage.id in supporting]
        others = [passage for passage in scenario.passages if passage.id not in supporting]
        drawn = [others[i] for i in self._rng.permutation(len(others))[: max(num - len(held), 0)]]
        both = held + drawn
        return [both[i] for i in self._rng.permutation(len(both))]

    def _gap(self, fit: tuple[float, float]) -> float:
        return float(np.clip(self._rng.lognormal(*fit), LEAST_GAP_S, MOST_GAP_S))


def load_script_files(folder: Path = SESSIONS_DIR) -> list[ScriptFile]:
    """Returns the script files, by name."""
    paths = sorted(path for path in folder.glob("*.json") if path.stem != "slots")
    return [msgspec.json.decode(path.read_bytes(), type=ScriptFile) for path in paths]


def load_slots(folder: Path = SESSIONS_DIR) -> dict[str, tuple[str, ...]]:
    """Returns what may stand for each name in braces, but for {number}."""
    return msgspec.json.decode((folder / "slots.json").read_bytes(), type=SlotFile).slots


def slot_names(texts: Sequence[str]) -> set[str]:
    """Returns the names in braces in texts."""
    return {name for text in texts for name in _SLOT.findall(text)}


def _filled(text: str, slots: Mapping[str, str]) -> str:
    return _SLOT.sub(lambda found: slots[found[1]], text)


def _opening(setting: Setting) -> tuple[Message, ...]:
    parts = (Message("system", setting.system), Message("tools", setting.tools))
    return tuple(message for message in parts if message.text)
