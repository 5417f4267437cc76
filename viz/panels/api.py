"""Named endpoints for programs and for agents (as MCP tools): one question, methods compared, policies replayed.

Each tells what it is doing and, last, its result. Gradio looks between two of these whether the caller is still there and closes the
endpoint where it is not, which stops the engine: nobody else waits for what nobody will read.
"""

import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import gradio as gr

from engine.cache_types import QUEUE_NAMES, CacheRun
from engine.chat.types import ChatMessage, ChatRequest, ChatStatus, ChatTurn
from engine.errors import BadRequest, EngineError
from engine.types import Chunk, Run, Status
from viz.panels.contract import SessionLike
from viz.panels.evict_form import FIRST_PREDICTOR, parse_job
from viz.panels.request_form import FusionForm, parse_form
from viz.panels.tables import saved_seconds
from viz.panels.verdict import num_recomputed, provenance_line, verdict

TELL_GAP_S = 0.25
# What an endpoint yields: statuses, then its result.
Told = Iterator[dict[str, Any]]


class Endpoint(NamedTuple):
    """A function under a public name; an unlisted one answers programs that know it and is not offered to agents."""

    name: str
    call: Callable[..., Told]
    is_listed: bool = True


def endpoints(session: SessionLike) -> tuple[Endpoint, ...]:
    """Returns the endpoints of a session. `run` is the older name of `compare`."""
    compare = make_compare(session)
    found = (
        Endpoint("answer", make_answer(session)),
        Endpoint("compare", compare),
        Endpoint("replay", make_replay(session)),
        Endpoint("run", compare, is_listed=False),
    )
    for endpoint in found:
        # Gradio describes a result by this, and knows nothing of iterators.
        endpoint.call.__annotations__["return"] = dict[str, Any]
    return found


def summary(run: Run) -> dict[str, Any]:
    """Returns the numbers of a run as JSON-able data."""
    return {
        "mode": run.provenance.mode,
        "provenance": provenance_line(run),
        "question": run.question,
        "verdict": verdict(run),
        "num_doc_tokens": run.num_doc_tokens,
        "methods": {
            m.method: {
                "answer": m.answer,
                "ttft_s": m.ttft_s,
                "ttft_repeats_s": list(m.ttft_repeats_s),
                "saved_s": saved_seconds(run, m),
                "num_recomputed": num_recomputed(run, m),
                "loaded_bytes": m.loaded_bytes,
                "rouge_l": m.quality.rouge_l,
                "kl_to_full": m.quality.kl_to_full,
            }
            for m in run.methods
        },
    }


def make_compare(session: SessionLike) -> Callable[..., Told]:
    """Returns the endpoint `compare` of one session."""

    def compare(scenario: str, question: str, ratio: float = 0.3, methods: str = "full,reuse,qcfuse") -> Told:
        """Answers a question over a scenario's chunks with several KV-reuse methods and returns times and quality.

        Args:
            scenario: name of a bundled scenario, such as "harbour-museum".
            question: one of its questions, or any other.
            ratio: share of the document tokens to recompute, 0 to 1.
            methods: names separated by commas.
        """
        with _sentences():
            names = [name.strip() for name in methods.split(",")]
            form = FusionForm(question, None, ratio, names, "system", 32, 0.0, 0, 1)
            job = parse_form(form, session.scenario(scenario), session.method_names())
            (run,) = yield from _telling(session.stream(job.request, job.methods), Run)
        yield summary(run)

    return compare


def make_answer(session: SessionLike) -> Callable[..., Told]:
    """Returns the endpoint `answer` of one session."""

    def answer(question: str, passages: str = "", scenario: str = "", method: str = "qcfuse", ratio: float = 0.3) -> Told:
        """Answers a question over passages whose KV caches are stored, reused and repaired where the question needs it.

        Args:
            question: what to answer.
            passages: texts to answer from, separated by empty lines. Leave it empty to name a scenario.
            scenario: name of a bundled scenario, such as "harbour-museum"; used where no passages are given.
            method: how caches are reused: "qcfuse", "full" (no reuse) or another name that `compare` takes.
            ratio: share of the passages' tokens to recompute, 0 to 1.
        """
        with _sentences():
            chunks = _passages(passages) if passages.strip() or not scenario else session.scenario(scenario).chunks()
            asked = ChatRequest((ChatMessage("user", question),), chunks, method, ratio)
            (turn,) = yield from _telling(session.chat(asked), ChatTurn)
        yield _turn(turn)

    return answer


def make_replay(session: SessionLike) -> Callable[..., Told]:
    """Returns the endpoint `replay` of one session."""

    def replay(workload: str = "balanced", policies: str = "saecache", capacity: str = "5 %", seed: int = 0) -> Told:
        """Replays a load of requests through prefix caches that evict by different policies; LRU and the limit MIN are always among them.

        Args:
            workload: name of a generated load, such as "balanced", "tool_use" or "agent".
            policies: names separated by commas, such as "saecache, lfu".
            capacity: share of the load's distinct blocks, such as "5 %", or a number of blocks, such as "4000 blocks".
            seed: draws the load, a whole number from 0.
        """
        with _sentences():
            if workload not in session.replays.workload_names():
                raise BadRequest(
                    f"The workload {workload[:40]!r} is not known; choose one of: {', '.join(session.replays.workload_names())}."
                )
            names = [name.strip() for name in policies.split(",") if name.strip()]
            job = parse_job(session.replays, workload, None, capacity, names, 1, FIRST_PREDICTOR)
            requests = [replace(request, seed=seed) for request in job.requests]
            runs = yield from _telling(session.replays.stream(requests, lambda: False), CacheRun)
        yield {"mode": runs[0].mode, "workload": workload, "seed": seed, "policies": {run.policy: _rates(run) for run in runs}}

    return replay


def _telling(items: Iterator[Any], wanted: type[Any]) -> Generator[dict[str, Any], None, list[Any]]:
    """Yields what is being done, a few times a second, and returns the items of the wanted type; to close it stops the work."""
    line: dict[str, Any] = {"status": "Waiting for the engine.", "fraction": 0.0, "num_ahead": 0}
    found, told_s = [], 0.0
    with closing(items):
        for item in items:
            if isinstance(item, wanted):
                found.append(item)
            elif isinstance(item, Status | ChatStatus):
                line = {"status": item.message, "fraction": item.fraction, "num_ahead": item.queue_position}
            # Also where the item says nothing itself, as a piece of an answer: the caller may be gone.
            if time.monotonic() - told_s >= TELL_GAP_S:
                told_s = time.monotonic()
                yield line
    return found


@contextmanager
def _sentences() -> Iterator[None]:
    """Passes an error of the body on as the sentence it is."""
    try:
        yield
    except EngineError as error:
        raise gr.Error(str(error), print_exception=False) from error


def _passages(text: str) -> tuple[Chunk, ...]:
    """Returns the paragraphs of a text as chunks. Raises BadRequest where there is none."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    if not parts:
        raise BadRequest("There is nothing to answer from; give passages, or the name of a scenario.")
    return tuple(Chunk(f"passage-{i + 1}", "", part) for i, part in enumerate(parts))


def _turn(turn: ChatTurn) -> dict[str, Any]:
    """Returns a turn of a chat as JSON-able data."""
    where = turn.provenance
    return {
        "answer": turn.answer,
        "mode": where.mode,
        "provenance": f"{where.model} · {where.dtype} · {where.device}, {where.num_threads} threads",
        "method": turn.method,
        "ttft_s": turn.ttft_s,
        "num_prompt_tokens": turn.num_prompt_tokens,
        "num_prefix_hits": turn.num_prefix_hits,
        "num_fused_loaded": turn.num_fused_loaded,
        "num_recomputed": turn.num_recomputed,
        "citations": [asdict(citation) for citation in turn.citations],
        "notices": list(turn.notices),
    }


def _rates(run: CacheRun) -> dict[str, Any]:
    """Returns what came of a policy: hit rates over all requests and the second half, and what it evicted."""
    evicted = run.evictions
    return {
        "capacity_blocks": run.capacity_blocks,
        "num_requests": run.num_requests,
        "hit_tokens": run.score().hit_tokens,
        "hit_blocks": run.score().hit_blocks,
        "hit_tokens_second_half": run.second_half.hit_tokens,
        "num_evicted": len(evicted.block),
        "num_regretted": int(evicted.regret.sum()),
        "evicted_by_queue": {name: int((evicted.queue == i).sum()) for i, name in enumerate(QUEUE_NAMES)},
    }
