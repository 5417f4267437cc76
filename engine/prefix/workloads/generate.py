"""Generated workloads by name: sessions of a mixture start by an arrival process until there are enough requests.

`tool_use`, `multi_turn_dominant`, `balanced` and `single_turn_dominant` have the sizes and shares of 2605.18825's synthetic mixes (282
requests with a shared prefix of 85 %; 1,000 requests of which 80, 50 and 20 % are multi-turn).
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import TokenType
from engine.prefix.workloads.arrivals import Arrivals, poisson
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.sessions import KINDS, Session, Turn, agent
from engine.prefix.workloads.stream import Span, Stream
from engine.prefix.workloads.workload import Workload

BLOCK_TOKENS = 16
_NOTE = "Synthetic: sessions are drawn from distributions, gaps from published fits."


@dataclass(frozen=True)
class Mixture:
    """Shares of session kinds in one half of a workload or in all of it, and how often sessions start.

    Args:
        shares: by name of KINDS; `later` those of the second half, None where nothing changes.
        mean_gap_s: between starts of sessions.
    """

    shares: Mapping[str, float]
    num_requests: int
    mean_gap_s: float
    later: Mapping[str, float] | None = None


MIXTURES: Mapping[str, Mixture] = {
    "mix": Mixture({"chat": 0.40, "agent": 0.05, "template": 0.35, "single": 0.20}, 6_000, 1.2),
    "shift": Mixture(
        {"chat": 0.75, "agent": 0.02, "template": 0.08, "single": 0.15},
        6_000,
        1.2,
        {"chat": 0.12, "agent": 0.10, "template": 0.63, "single": 0.15},
    ),
    "chat": Mixture({"chat": 1.0}, 6_000, 1.5),
    "agent": Mixture({"agent": 1.0}, 6_000, 12.0),
    "template": Mixture({"template": 1.0}, 6_000, 0.5),
    "thinking": Mixture({"thinking": 1.0}, 5_000, 1.5),
    "multi_turn_dominant": Mixture({"chat": 0.80, "template": 0.12, "single": 0.08}, 1_000, 1.5),
    "balanced": Mixture({"chat": 0.50, "template": 0.30, "single": 0.20}, 1_000, 1.0),
    "single_turn_dominant": Mixture({"chat": 0.20, "template": 0.48, "single": 0.32}, 1_000, 0.8),
    "tool_use": Mixture({"tool_use": 1.0}, 282, 20.0),
}


def generate(name: str, seed: int, arrivals: Arrivals | None = None) -> Workload:
    """Returns the generated workload of a name; the same name, seed and arrivals give the same workload. Raises BadRequest.

    Args:
        arrivals: of sessions; Poisson at the mixture's rate without it.
    """
    if name not in MIXTURES:
        raise BadRequest(f"Unknown workload {name!r}; known ones are: {', '.join(MIXTURES)}.")
    mixture, rng = MIXTURES[name], np.random.default_rng([seed, *name.encode()])
    builder = WorkloadBuilder(name, BLOCK_TOKENS)
    starts = (arrivals or poisson(mixture.mean_gap_s))(rng)
    pending: list[float] = []
    number = num_done = 0
    # The workload ends with the start of a session: a tail in which no session starts any more would be another load.
    while num_done < mixture.num_requests:
        start_s = next(starts)
        is_late = mixture.later is not None and num_done >= mixture.num_requests / 2
        for time_s in _add(builder, number, start_s, _draw(mixture.later if is_late else mixture.shares, rng)):
            heapq.heappush(pending, time_s)
        number += 1
        while pending and pending[0] <= start_s:
            heapq.heappop(pending)
            num_done += 1
    return builder.build((_NOTE, f"Seed {seed}."), until_s=start_s)


def _draw(shares: Mapping[str, float], rng: np.random.Generator) -> Session:
    weights = np.array(list(shares.values()))
    kind = list(shares)[int(rng.choice(len(weights), p=weights / weights.sum()))]
    return _DRAWN[kind](rng)


def _tool_use(rng: np.random.Generator) -> Session:
    """Returns an agent's session whose template is most of its prompts, as in the paper's mix with 85 % of the prefix shared."""
    session = agent(rng)
    short = tuple(turn._replace(asks=tuple(Span(s.kind, max(1, s.num_tokens // 8)) for s in turn.asks)) for turn in session.turns[:6])
    return session._replace(template="agent 0", template_tokens=3_200, turns=short)


_DRAWN: Mapping[str, Callable[[np.random.Generator], Session]] = {**KINDS, "tool_use": _tool_use}


def _add(builder: WorkloadBuilder, number: int, start_s: float, session: Session) -> list[float]:
    """Adds a session's requests, prompts and answers typed and cut into blocks; returns their times."""
    stream = Stream(builder, number, session.template, session.template_tokens)
    time_s, times = start_s, []
    for turn in session.turns:
        time_s += turn.gap_s
        times.append(time_s)
        prompt = stream.append(turn.asks)
        num_prompt, num_tokens = len(prompt), stream.num_tokens
        builder.add(Arrival(time_s, number, num_tokens, session.is_agent, turn.waits_for_tool), _answer(stream, turn), num_prompt)
    return times


def _answer(stream: Stream, turn: Turn) -> list[int]:
    """Returns the path of prompt and answer; what was thought stays in it, but not in the prompts that follow."""
    if not turn.thinks:
        return stream.append(turn.answers)
    path = stream.peek((Span(TokenType.COT, turn.thinks), *turn.answers))
    stream.append(turn.answers)
    return path
