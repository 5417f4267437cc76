"""Cache runs made up number by number, for what is drawn and said of them; and a session whose long live runs wait to be stopped."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from engine.cache_types import AgeHistogram, CacheRun, CacheSnapshots, EvictionLog, LiveAsk, LivePoint, RequestLog
from engine.errors import Cancelled
from engine.live_runs import LiveRuns
from engine.turns import Turns
from engine.types import Status

HOSTILE = "<img src=x onerror=window.__hit=1>${window.__hit=1}{{value}}<script>window.__hit=1</script>"
NUM_REQUESTS, PROMPT_BLOCKS, BLOCK_TOKENS, CAPACITY, NUM_BLOCKS = 8, 10, 16, 40, 400
HELD_REQUESTS, SERVED_REQUESTS = 120, 10
# Longer than the page leaves between two drawings of a live run.
DRAW_GAP_S = 2.0
WEIGHT_NAMES = ("alpha chat", "alpha agent", "w system", "gamma")


def made_run(policy: str = "saecache", hit_blocks: int = 4, seed: int = 0, capacity: int = CAPACITY, limit_blocks: int = 8) -> CacheRun:
    """Returns a run of 8 requests of 10 blocks, of which `hit_blocks` are found every time; MIN finds `limit_blocks`.

    Every request from the third on pushes 3 blocks out; two of them are asked for by the next request, where MIN has one.
    """
    num = NUM_REQUESTS
    return CacheRun(
        mode="simulated",
        created="2026-11-30 12:00 UTC",
        commit="abc1234",
        workload="made-up",
        notes=("Made up.",),
        policy=policy,
        params={},
        predictor="oracle with 77% accuracy",
        cost="8b-a100: computed",
        seed=seed,
        capacity_blocks=capacity,
        block_tokens=BLOCK_TOKENS,
        num_blocks=NUM_BLOCKS,
        requests=_requests(num, hit_blocks),
        evictions=_evictions(),
        snapshots=CacheSnapshots(
            request=np.array([0, 3, 7], np.int32),
            queues=np.array([[5, 0, 5, 0], [5, 10, 20, 5], [0, 10, 25, 5]], np.int32),
            kinds=np.array([[5, 5, 0, 0, 0], [10, 10, 5, 15, 0], [10, 10, 5, 10, 5]], np.int32),
            weight_names=WEIGHT_NAMES,
            weights=np.array([[1, 1, 1, 1], [1.5, 0.5, 2, 1], [2, 0.25, 3, 4]], np.float32),
        ),
        ages=AgeHistogram(np.array([1.0, 10.0, 100.0]), np.array([6, 3, 1]), np.array([1, 3, 6])),
        limit_hit_blocks=np.full(num, limit_blocks, np.int32),
        elapsed_s=0.01,
    )


def _requests(num: int, hit_blocks: int) -> RequestLog:
    prompt_tokens = PROMPT_BLOCKS * BLOCK_TOKENS + 4
    missed = (PROMPT_BLOCKS - hit_blocks) * BLOCK_TOKENS
    return RequestLog(
        time_s=np.arange(num, dtype=np.float64) * 10,
        session=np.zeros(num, np.int32),
        prompt_blocks=np.full(num, PROMPT_BLOCKS, np.int32),
        hit_blocks=np.full(num, hit_blocks, np.int32),
        prompt_tokens=np.full(num, prompt_tokens, np.int32),
        hit_tokens=np.full(num, hit_blocks * BLOCK_TOKENS, np.int32),
        num_inserted=np.full(num, PROMPT_BLOCKS - hit_blocks, np.int32),
        ttft_s=np.full(num, 0.01 * (11 - hit_blocks), np.float32),
        missed_tokens=np.tile(np.array([16, missed - 16, 0, 4], np.int32), (num, 1)),
    )


def _evictions() -> EvictionLog:
    request = np.repeat(np.arange(2, NUM_REQUESTS), 3).astype(np.int32)
    num = len(request)
    third = np.arange(num) % 3
    suffered = np.where((third < 2) & (request + 1 < NUM_REQUESTS), request + 1, -1).astype(np.int32)
    return EvictionLog(
        request=request,
        block=np.arange(num, dtype=np.int32),
        kind=(np.arange(num) % 5).astype(np.uint8),
        queue=(np.arange(num) % 4).astype(np.uint8),
        depth=np.arange(num, dtype=np.int32),
        hits=third.astype(np.int32),
        idle_s=np.full(num, 12.0, np.float32),
        suffered=suffered,
        early_s=np.where(suffered >= 0, 10.0, 0.0).astype(np.float32),
        regret=(third == 0) & (suffered >= 0),
    )


def made_set(**changes: object) -> tuple[CacheRun, ...]:
    """Returns runs of LRU (3 blocks found), SAECache (4), SAE-G (6) and MIN (8)."""
    runs = (made_run("lru", 3), made_run("saecache", 4), made_run("sae_g", 6), made_run("min", 8))
    return tuple(replace(run, **changes) for run in runs)


class HoldingLive(LiveRuns):
    """Live runs of which the longest stands still after its first requests until it is stopped, however slow the page is that shows it."""

    def stream(self, ask: LiveAsk, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Status | LivePoint | CacheRun]:
        """Yields what LiveRuns does; of a long run the first requests, and a last status once they may be drawn. Raises EngineError."""
        if ask.num_requests < HELD_REQUESTS:
            yield from super().stream(ask, cancelled)
            return
        for item in super().stream(replace(ask, num_requests=SERVED_REQUESTS), cancelled):
            if not isinstance(item, CacheRun):
                yield item
        time.sleep(DRAW_GAP_S)
        yield Status(f"Request {SERVED_REQUESTS} of {ask.num_requests}", SERVED_REQUESTS / ask.num_requests)
        # Silent from here on: a page that draws again and again takes long to take a press.
        while not cancelled():
            time.sleep(0.05)
        raise Cancelled("Stopped.")


def holding_session() -> Any:
    """Returns the plain fake session with such live runs."""
    from fakes import FakeSession, tiny_model_ready

    return FakeSession(live=HoldingLive(Turns(), tiny_model_ready))
