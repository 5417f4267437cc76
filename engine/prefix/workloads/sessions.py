"""Sessions of four kinds, drawn from seeds: chats, tool-using agents, templated single questions, and single prompts nobody repeats.

Gaps between turns follow the log-normal fits of 2605.18825 (chat 4.82, 1.25; agent 2.28, 1.34 in ln s); lengths are log-normal around
values usual for the kind. All of it is synthetic.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.prefix.blocks import TokenType
from engine.prefix.workloads.stream import Span

SYSTEM, USER, TOOL, RESPONSE, COT = TokenType
CHAT_GAP, AGENT_GAP, USER_GAP = (4.82, 1.25), (2.28, 1.34), (4.82, 1.25)
NUM_CHAT_TEMPLATES, NUM_AGENT_TEMPLATES, NUM_TEMPLATES = 12, 6, 40


class Turn(NamedTuple):
    """One request of a session.

    Args:
        gap_s: seconds since the session's request before; 0 for the first.
        asks: what the prompt gains; answers: what comes back and is repeated from then on.
        thinks: tokens that come before the answer and are never repeated.
    """

    gap_s: float
    asks: tuple[Span, ...]
    answers: tuple[Span, ...]
    waits_for_tool: bool = False
    thinks: int = 0


class Session(NamedTuple):
    """A session before it has a start: its template and turns."""

    template: str
    template_tokens: int
    is_agent: bool
    turns: tuple[Turn, ...]


def chat(rng: np.random.Generator) -> Session:
    """Returns a chat: 74 % have more than one turn; half of them stand behind one of a dozen system prompts."""
    num = 1 if rng.random() < 0.26 else 2 + int(rng.geometric(0.32)) - 1
    template = _popular(rng, NUM_CHAT_TEMPLATES) if rng.random() < 0.5 else None
    turns = tuple(
        Turn(0.0 if i == 0 else _gap(rng, CHAT_GAP), (Span(USER, _tokens(rng, 70, 1.0)),), (Span(RESPONSE, _tokens(rng, 250, 0.8)),))
        for i in range(num)
    )
    size = 0 if template is None else 96 + 48 * (template * 7 % 13)
    return Session(f"chat {template}", size, False, turns)


def thinking_chat(rng: np.random.Generator) -> Session:
    """Returns a chat of which every other one thinks before it answers, without repeating its thoughts."""
    session = chat(rng)
    if rng.random() < 0.5:
        return session
    return session._replace(turns=tuple(turn._replace(thinks=_tokens(rng, 500, 0.7)) for turn in session.turns))


def agent(rng: np.random.Generator) -> Session:
    """Returns an agent's session: tool calls seconds apart, now and then a person's turn minutes later."""
    template = _popular(rng, NUM_AGENT_TEMPLATES)
    turns = []
    for i in range(3 + int(rng.geometric(0.09))):
        from_user = i == 0 or rng.random() < 0.12
        gap_s = 0.0 if i == 0 else _gap(rng, USER_GAP if from_user else AGENT_GAP)
        asks = Span(USER, _tokens(rng, 120, 0.9)) if from_user else Span(TOOL, _tokens(rng, 350, 1.0))
        turns.append((gap_s, asks, (Span(COT, _tokens(rng, 60, 0.8)), Span(RESPONSE, _tokens(rng, 90, 0.7)))))
    # A request waits for a tool where the next one is a tool's output.
    waits = [turn[1].kind == TOOL for turn in turns[1:]] + [False]
    done = tuple(Turn(gap, (asks,), answers, wait) for (gap, asks, answers), wait in zip(turns, waits, strict=True))
    return Session(f"agent {template}", 1_600 + 400 * (template * 5 % 7), True, done)


def templated(rng: np.random.Generator) -> Session:
    """Returns one question behind one of forty long templates."""
    template = _popular(rng, NUM_TEMPLATES)
    turn = Turn(0.0, (Span(USER, _tokens(rng, 110, 0.7)),), (Span(RESPONSE, _tokens(rng, 90, 0.7)),))
    return Session(f"template {template}", 400 + 100 * (template * 11 % 23), False, (turn,))


def single(rng: np.random.Generator) -> Session:
    """Returns a single prompt that shares nothing with any other."""
    turn = Turn(0.0, (Span(USER, _tokens(rng, 600, 0.8)),), (Span(RESPONSE, _tokens(rng, 250, 0.8)),))
    return Session("single", 0, False, (turn,))


KINDS: dict[str, Callable[[np.random.Generator], Session]] = {
    "chat": chat,
    "thinking": thinking_chat,
    "agent": agent,
    "template": templated,
    "single": single,
}


def _popular(rng: np.random.Generator, num: int) -> int:
    """Returns one of `num` things, the i-th with a weight of 1 / (i + 1)."""
    weights = 1.0 / np.arange(1, num + 1)
    return int(rng.choice(num, p=weights / weights.sum()))


def _tokens(rng: np.random.Generator, median: float, sigma: float) -> int:
    return max(1, min(int(rng.lognormal(np.log(median), sigma)), 8_000))


def _gap(rng: np.random.Generator, fit: tuple[float, float]) -> float:
    return float(min(max(rng.lognormal(*fit), 0.5), 7_200.0))
