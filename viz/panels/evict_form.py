"""What is entered on the Evict tab, and the replays it asks for. Knows nothing of Gradio."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.cache_types import CacheRun, ReplayRequest
from engine.errors import BadRequest
from viz import theme
from viz.figures.evict_scores import FLOOR, LIMIT

OWN_LOG, FIRST_WORKLOAD = "own log", "balanced"
LOSING_WORKLOAD = "tool_use"
# What each generated load is, in the order offered; the benchmark's own name where one is not listed.
WORKLOADS = {
    "balanced": "Balanced: half chats, half single questions",
    "tool_use": "Tool use behind one long prompt (SAECache loses here)",
    "single_turn_dominant": "Mostly single questions",
    "multi_turn_dominant": "Mostly long chats",
    "mix": "Chats, agents, templates and noise (long)",
    "shift": "Traffic that changes half way (long)",
    "chat": "Chats alone (long)",
    "agent": "Agents alone (long)",
    "template": "Templated questions alone (long)",
    "thinking": "Chats that think before they answer (long)",
}
FIRST_POLICIES = ("sae_g", "saecache", "lpc")
RULE = "logistic rule"
PREDICTORS = {"none": None, RULE: None, "66 % right": 0.66, "77 % right": 0.77, "90 % right": 0.9, "always right": 1.0}
FIRST_PREDICTOR = "77 % right"
SWEEP_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
SWEEP_POLICIES = (FLOOR, "sae_g", "saecache", LIMIT)
MAX_SEEDS = 5


class Catalog(Protocol):
    """What can be replayed."""

    def policy_names(self) -> tuple[str, ...]:
        """Returns the names of all policies."""

    def workload_names(self) -> tuple[str, ...]:
        """Returns the names of the generated workloads."""


@dataclass(frozen=True, slots=True)
class Job:
    """Replays to make: `requests` of the chosen policies between LRU and MIN; `is_sweep` where they are of many capacities."""

    requests: tuple[ReplayRequest, ...]
    is_sweep: bool = False

    def of(self, policy: str) -> ReplayRequest | None:
        """Returns the request of a policy's first seed."""
        return next((request for request in self.requests if request.policy == policy), None)


def workload_choices(catalog: Catalog, log: str | None = None) -> list[tuple[str, str]]:
    """Returns what to offer, as (label, name): listed loads first, then others, then the visitor's own log."""
    names = sorted(catalog.workload_names(), key=lambda name: (list(WORKLOADS).index(name) if name in WORKLOADS else len(WORKLOADS), name))
    own = [("Your own log", OWN_LOG)] if log else []
    return [*((WORKLOADS.get(name, name), name) for name in names), *own]


def policy_choices(catalog: Catalog) -> list[tuple[str, str]]:
    """Returns the policies that may be ticked; LRU and MIN are always replayed."""
    names = [name for name in catalog.policy_names() if name not in (FLOOR, LIMIT)]
    return [(theme.policy_style(name).label, name) for name in theme.policy_order(names)]


def parse_capacity(text: Any) -> float:
    """Returns a share below 1 of the distinct blocks, or a number of blocks, from '5 %', '0.05', '4,000 blocks'. Raises BadRequest."""
    plain = str("" if text is None else text).strip()
    found = re.fullmatch(r"(\S+?)\s*(%|blocks?)?", plain)
    unit = found.group(2) if found else None
    try:
        value = float(found.group(1).replace(",", "")) if found else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadRequest(f"The capacity {plain[:40]!r} is not a number; give a share such as 5 %, or a number such as 4000 blocks.")
    if value <= 0:
        raise BadRequest(f"The capacity is {plain[:40]}; the cache must hold at least one block: give a share such as 5 %, or 4000 blocks.")
    if unit == "%":
        if value >= 100:
            raise BadRequest(f"The capacity is {plain[:40]}; below 100 % of the distinct blocks there is something to evict: give less.")
        return value / 100
    if unit and value < 1:
        raise BadRequest(f"The capacity is {plain[:40]}; the cache must hold at least one block.")
    return value


def parse_job(
    catalog: Catalog, workload: Any, log: str | None, capacity: Any, policies: Any, num_seeds: Any, predictor: Any, sweep: bool = False
) -> Job:
    """Returns the replays that a form asks for: LRU and MIN always among them. Raises BadRequest, UnknownName."""
    source = _workload(catalog, log, workload)
    if predictor not in PREDICTORS:
        raise BadRequest(f"The predictor {str(predictor)[:40]!r} is not known; choose one of: {', '.join(PREDICTORS)}.")
    if not isinstance(num_seeds, int | float) or not 1 <= num_seeds <= MAX_SEEDS:
        raise BadRequest(f"The number of seeds is {str(num_seeds)[:20]}; give 1 to {MAX_SEEDS}.")
    chosen = policies if isinstance(policies, list) else []
    unknown = [str(name)[:40] for name in chosen if name not in catalog.policy_names()]
    if unknown:
        raise BadRequest(f"The policy {unknown[0]!r} is not known; choose among: {', '.join(catalog.policy_names())}.")
    told = {"accuracy": PREDICTORS[predictor], "by_rule": predictor == RULE}
    if sweep:
        names = theme.policy_order({*SWEEP_POLICIES, *chosen})
        return Job(tuple(ReplayRequest(source, name, share, 0, **told) for share in SWEEP_SHARES for name in names), is_sweep=True)
    size = parse_capacity(capacity)
    names = (FLOOR, *(name for name in theme.policy_order(set(chosen)) if name not in (FLOOR, LIMIT)), LIMIT)
    seeds = range(int(num_seeds))
    return Job(tuple(ReplayRequest(source, name, size, seed, **told) for seed in seeds for name in names))


def job_of(runs: Sequence[CacheRun]) -> Job:
    """Returns the replays that give recorded runs of generated workloads again."""
    return Job(tuple(_request_of(run) for run in runs))


def _request_of(run: CacheRun) -> ReplayRequest:
    accuracy, by_rule = _accuracy(run.predictor), run.predictor.startswith(f"a {RULE}")
    return ReplayRequest(run.workload, run.policy, run.capacity_blocks, run.seed, None if by_rule else accuracy, run.params, by_rule)


def _accuracy(predictor: str) -> float | None:
    """Returns the accuracy that a run names."""
    if predictor == "oracle":
        return 1.0
    found = re.search(r"(\d+)% accuracy", predictor)
    return int(found.group(1)) / 100 if found else None


def _workload(catalog: Catalog, log: str | None, name: Any) -> str:
    """Returns what is replayed; a path is only ever that of the visitor's own upload."""
    if name == OWN_LOG:
        if not log:
            raise BadRequest("No log was opened; press “Open your own log” and choose a file.")
        return log
    if name not in catalog.workload_names():
        raise BadRequest(f"The workload {str(name)[:40]!r} is not known; choose one of: {', '.join(catalog.workload_names())}.")
    return str(name)
