"""Replays that give made-up runs for any request, and the forms and boards of the Evict tab's tests."""

from evict_samples import made_run, made_set

from engine.errors import BadRequest, Cancelled
from engine.prefix.cachefile import dump_cache_run, parse_cache_run
from engine.replay_victims import Victim
from engine.replays import CurveRow, RatePoint
from engine.types import Status
from viz.panels.evict_board import board_of
from viz.panels.evict_form import (
    job_of,
)

RUNS = made_set()


FORM = ("balanced", None, "5 %", ["sae_g", "saecache"], 1, "77 % right")


class FakeReplays:
    """Gives made-up runs for any request; remembers what it was asked."""

    def __init__(self, fail=None):
        self.fail, self.asked, self.num_closed = fail, [], 0

    def policy_names(self):
        return ("lru", "saecache", "sae_g", "lpc", "min")

    def workload_names(self):
        return ("tool_use", "balanced", "brand_new")

    def has_recording(self, workload):
        return workload == "balanced"

    def recorded(self, workload):
        return RUNS if workload == "balanced" else ()

    def recorded_curve(self, workload):
        rates = {"lru": 0.4, "saecache": 0.3, "sae_g": 0.5, "min": 0.8}
        return tuple(CurveRow(0.3, 120, name, 3, RatePoint(rate, rate - 0.01, rate + 0.01)) for name, rate in rates.items())

    def open(self, data):
        return parse_cache_run(data)

    def dump(self, run):
        return dump_cache_run(run)

    def stream(self, requests, cancelled):
        try:
            for i, request in enumerate(requests):
                if cancelled():
                    raise Cancelled("Stopped.")
                self.asked.append(request)
                yield Status(f"Replaying {request.policy}", i / len(requests))
                if self.fail:
                    raise BadRequest(self.fail)
                capacity = int(request.capacity if request.capacity >= 1 else request.capacity * 400)
                hits = {"lru": 3, "saecache": 4, "sae_g": 6, "min": 8}[request.policy]
                yield made_run(request.policy, hits, request.seed, capacity)
        finally:
            self.num_closed += 1

    def victims(self, request, moment, count):
        if self.fail:
            raise BadRequest(self.fail)
        self.asked.append((request, moment, count))
        reason = "evicted: queue chat weighs 0.95, SYSTEM tokens 1.75."
        factors = (("alpha", 0.95), ("p", 0.5))
        return tuple(Victim(moment, block, "response", "chat", 20 - block, 0, 12.0, reason, factors) for block in range(3))


def board():
    return board_of(RUNS, "recorded", job_of(RUNS))


def cells(table):
    return {row[0]: row[1:] for row in table["rows"]}
