"""The requests of a live run for one model: typed prompts and answers, and the same as a workload of blocks. Knows no torch."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.errors import BadRequest
from engine.prefix.live_script import Session, Storyteller
from engine.prefix.predictor_rule import SessionRule
from engine.prefix.roles import ChatFormat, Message, TypedTokens
from engine.prefix.workloads.builder import Arrival, WorkloadBuilder
from engine.prefix.workloads.workload import Workload

BLOCK_TOKENS = 16
# Sessions drawn for one that fits before the model counts as too small for all of them.
MOST_UNFIT = 50


class LiveRequest(NamedTuple):
    """A prompt and the answer that is put behind it. kind: of its session."""

    kind: str
    prompt: TypedTokens
    answer: TypedTokens


@dataclass(frozen=True, eq=False, slots=True)
class LiveTraffic:
    """Requests in order of time; `workload` has when they come, whose they are and what the predictor says of them."""

    requests: tuple[LiveRequest, ...]
    workload: Workload

    def predicted(self, accuracy: float | None, seed: int) -> "LiveTraffic":
        """Returns the traffic with a predictor of an accuracy, None for none."""
        workload = self.workload.unpredicted() if accuracy is None else self.workload.predicted(accuracy, seed)
        return replace(self, workload=workload)

    def predicted_by(self, rule: SessionRule) -> "LiveTraffic":
        """Returns the traffic with a rule's predictions."""
        return replace(self, workload=rule.predicted(self.workload))


class _Timed(NamedTuple):
    arrival: Arrival
    request: LiveRequest


def live_traffic(chat: ChatFormat, num_requests: int, seed: int, mean_gap_s: float, max_context: int) -> LiveTraffic:
    """Returns the first requests, in order of time, of sessions drawn by seed. Raises BadRequest.

    Answers are the scripts', so that every policy sees the same prompts. A session ends before the turn that the model's context
    does not hold.
    """
    if num_requests < 1:
        raise BadRequest(f"The live run has {num_requests} requests; it must have at least one.")
    timed: list[_Timed] = []
    num_unfit = 0
    for number, session in enumerate(Storyteller(seed, mean_gap_s)):
        # Later sessions start later, so nothing before this start is still to come.
        if sum(entry.arrival.time_s <= session.start_s for entry in timed) >= num_requests:
            break
        told = list(_told(chat, session, number, max_context))
        num_unfit = 0 if told else num_unfit + 1
        if num_unfit > MOST_UNFIT:
            raise BadRequest(
                f"The model reads at most {max_context:,} tokens, too few for any of {MOST_UNFIT} sessions; choose a larger one."
            )
        timed += told
    timed = sorted(timed, key=lambda entry: entry.arrival.time_s)[:num_requests]
    return LiveTraffic(tuple(entry.request for entry in timed), _workload(timed, seed, mean_gap_s))


def _told(chat: ChatFormat, session: Session, number: int, max_context: int) -> Iterable[_Timed]:
    """Yields the requests of a session."""
    messages, time_s = list(session.opening), session.start_s
    for i, turn in enumerate(session.turns):
        time_s += turn.gap_s
        messages.append(turn.asks)
        prompt, answer = chat.prompt(messages), chat.answer(turn.answer)
        if len(prompt) + len(answer) > max_context:
            return
        messages.append(Message("assistant", turn.answer))
        waits = i + 1 < len(session.turns) and session.turns[i + 1].asks.role == "tool"
        yield _Timed(Arrival(time_s, number, len(prompt), session.is_agent, waits, turn=i), LiveRequest(session.kind, prompt, answer))


def _workload(timed: list[_Timed], seed: int, mean_gap_s: float) -> Workload:
    builder = WorkloadBuilder("live-mixture", BLOCK_TOKENS)
    for arrival, request in timed:
        whole = request.prompt + request.answer
        keys = whole.block_keys(BLOCK_TOKENS)
        path = builder.blocks(keys, whole.block_kinds(BLOCK_TOKENS), contents=keys)
        builder.add(arrival, path, len(request.prompt) // BLOCK_TOKENS)
    return builder.build(
        (
            "Scripted chats, agents, templates and questions over passages, told with other names every time; all of it fictional.",
            f"Seed {seed}, a session every {mean_gap_s:g} s on average. Policies see these times; the model does not wait for them.",
            "Answers are the script's and are computed as one batch behind the prompt.",
        )
    )
