"""Cache runs of one load as the player reads them: plain JSON, arrays as base64. Knows no page, no file and no picture.

Names are those of `CacheRun`. Nothing is thinned out. Whole numbers go column by column as differences, each with how often it repeats:
blocks of one prompt leave one after another, so most differences repeat. What the runs share is packed once, and times that follow from
those of the requests are left out. The histogram of idle times is not shown by the player and not packed.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.cache_types import MISS_NAMES, CacheRun, EvictionLog
from engine.errors import BadRequest

FORMAT: Final = "fusescope-cache-player/1"
_SHARED: Final = ("time_s", "session", "prompt_blocks", "prompt_tokens")
_SETTING: Final = ("workload", "seed", "capacity_blocks", "block_tokens", "num_blocks")
# In the order the player lists causes by number: missed_0 is MISS_NAMES[0].
_OWN: Final = ("hit_blocks", "hit_tokens", "num_inserted", "ttft_s")
_EVICTED: Final = ("request", "block", "kind", "queue", "depth", "hits", "suffered", "regret")


def pack_film(runs: Sequence[CacheRun], title: str | Mapping[str, str] = "", is_fresh: bool = False) -> dict[str, Any]:
    """Returns runs of several policies over one load in caches of one size, as JSON-able data.

    Args:
        title: of the load, in one language or by language; its name without one.
        is_fresh: whether the runs were made just now: a live run that was not is a replay.

    Raises BadRequest where the runs are not of one load and one cache, or one policy comes twice.
    """
    _check(runs)
    first = runs[0]
    limits = [run.limit_hit_blocks for run in runs if run.limit_hit_blocks is not None]
    return {
        "format": FORMAT,
        "provenance": {
            "mode": _mode(first, is_fresh),
            "created": max(run.created for run in runs),
            "commit": first.commit,
            "is_fresh": is_fresh,
        },
        "scenario": first.workload,
        "title": dict(title) if isinstance(title, Mapping) else {"en": title or first.workload},
        **{name: getattr(first, name) for name in _SETTING},
        "notes": first.notes,
        "requests": {name: _column(getattr(first.requests, name)) for name in _SHARED},
        "limit": _column(limits[0]) if limits else None,
        "methods": [_pack_run(run, is_fresh) for run in runs],
    }


def _check(runs: Sequence[CacheRun]) -> None:
    if not runs:
        raise BadRequest("There is no cache run to show; replay a load first.")
    first, names = runs[0], [run.policy for run in runs]
    for run in runs:
        same = all(getattr(run, name) == getattr(first, name) for name in _SETTING) and run.num_requests == first.num_requests
        if not (same and all(np.array_equal(getattr(run.requests, name), getattr(first.requests, name)) for name in _SHARED)):
            raise BadRequest(f"The run of {run.policy} is of another load or cache than that of {first.policy}; show them apart.")
    if len(set(names)) < len(names):
        raise BadRequest(f"The runs are of {', '.join(names)}; give each policy once.")


def _mode(run: CacheRun, is_fresh: bool) -> str:
    return "replay" if run.mode == "live" and not is_fresh else run.mode


def _pack_run(run: CacheRun, is_fresh: bool) -> dict[str, Any]:
    log, snapshots = run.requests, run.snapshots
    missed = {f"missed_{i}": _column(log.missed_tokens[:, i]) for i in range(len(MISS_NAMES))}
    return {
        "policy": run.policy,
        "mode": _mode(run, is_fresh),
        **{name: getattr(run, name) for name in ("created", "commit", "params", "predictor", "cost", "elapsed_s")},
        "requests": {**{name: _column(getattr(log, name)) for name in _OWN}, **missed},
        "evictions": _pack_evictions(run.evictions, log.time_s),
        "snapshots": {name: _column(getattr(snapshots, name).ravel()) for name in ("request", "queues", "kinds", "weights")},
        "weight_names": snapshots.weight_names,
    }


def _pack_evictions(log: EvictionLog, time_s: np.ndarray) -> dict[str, Any]:
    columns = {name: _column(getattr(log, name)) for name in _EVICTED}
    last = _last_use(log, time_s)
    columns |= {"idle_s": _column(log.idle_s)} if last is None else {"last": _column(last)}
    early_s = np.where(log.suffered < 0, 0.0, time_s[log.suffered] - time_s[log.request]).astype(np.float32)
    return columns if np.array_equal(early_s, log.early_s) else {**columns, "early_s": _column(log.early_s)}


def _last_use(log: EvictionLog, time_s: np.ndarray) -> np.ndarray | None:
    """Returns the request of each block's last use, from which its idle time follows exactly; None where it does not."""
    if not len(log.request) or not np.array_equal(time_s, np.sort(time_s)):
        return None
    wanted = time_s[log.request] - log.idle_s
    right = np.clip(np.searchsorted(time_s, wanted), 0, len(time_s) - 1)
    found = np.full(len(right), -1)
    for near in (right - 1, right, right + 1):
        candidate = np.clip(near, 0, len(time_s) - 1)
        exact = (time_s[log.request] - time_s[candidate]).astype(np.float32) == log.idle_s
        found = np.where(exact & (found < 0), candidate, found)
    return found if (found >= 0).all() else None


def _column(values: np.ndarray) -> str:
    """Returns values as base64 behind a letter for their kind: i whole numbers, f float32, d float64."""
    if values.dtype == np.float64:
        return "d" + _b64(values.astype("<f8").tobytes())
    if values.dtype == np.float32:
        return "f" + _b64(values.astype("<f4").tobytes())
    return "i" + _b64(pack_ints(values))


def pack_ints(values: np.ndarray) -> bytes:
    """Returns differences with how often each repeats beyond once, zigzag, seven bits a byte, low ones first."""
    steps = np.diff(values.astype(np.int64), prepend=0)
    if not len(steps):
        return b""
    starts = np.flatnonzero(np.concatenate([[True], steps[1:] != steps[:-1]]))
    repeats = np.diff(np.append(starts, len(steps))) - 1
    packed = bytearray()
    for step, again in zip(steps[starts].tolist(), repeats.tolist(), strict=True):
        for number in (2 * step if step >= 0 else -2 * step - 1, again):
            while number > 127:
                packed.append(number & 127 | 128)
                number >>= 7
            packed.append(number)
    return bytes(packed)


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
