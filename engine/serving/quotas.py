"""How much each client may ask in a while. Knows no protocol; the clock is given, so that jumps of the wall clock do nothing."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.errors import QuotaExceeded
from engine.protection import MIB, Protection
from engine.serving.clients import Client

Kind = Literal["requests", "tokens", "upload_bytes"]
ADDRESS_FACTOR, MAX_BUCKETS = 10, 20_000


@dataclass(frozen=True, slots=True)
class Quota:
    """An amount in a stretch of time, and how it is called in a sentence."""

    amount: int
    window_s: float
    words: str

    @property
    def rate_per_s(self) -> float:
        """Returns how fast a used amount comes back."""
        return self.amount / self.window_s


@dataclass(slots=True)
class _Bucket:
    level: float
    at_s: float


class Quotas:
    """Counts what clients use. Thread-safe; remembers a bounded number of clients, those that are back at their full amount first to go.

    Args:
        protection: the amounts; 0 for any.
        clock: seconds that never go back.
    """

    def __init__(self, protection: Protection, clock: Callable[[], float] = time.monotonic) -> None:
        self._quotas: dict[Kind, Quota] = {
            "requests": Quota(protection.requests_per_minute, 60.0, "requests a minute"),
            "tokens": Quota(protection.tokens_per_hour, 3600.0, "tokens an hour"),
            "upload_bytes": Quota(protection.upload_mib_per_hour * MIB, 3600.0, "MiB of uploads an hour"),
        }
        self._clock, self._lock = clock, threading.Lock()
        self._buckets: OrderedDict[tuple[Kind, str], _Bucket] = OrderedDict()

    def charge(self, client: Client, kind: Kind, amount: int = 1) -> None:
        """Uses an amount up, of the client's and of its address's. Raises QuotaExceeded where either lacks it, and then uses nothing."""
        quota = self._quotas[kind]
        if not quota.amount:
            return
        if amount > quota.amount:
            raise QuotaExceeded(f"This needs {_shown(kind, amount)} of {_shown(kind, quota.amount)} {quota.words}; send less.", 0.0)
        with self._lock:
            buckets = self._of(client, kind, quota)
            for bucket, factor in buckets:
                if bucket.level < amount:
                    wait_s = (amount - bucket.level) / (quota.rate_per_s * factor)
                    raise QuotaExceeded(f"More than {_shown(kind, quota.amount)} {quota.words}; try again in {wait_s:.0f} s.", wait_s)
            for bucket, _ in buckets:
                bucket.level -= amount

    def settle(self, client: Client, kind: Kind, amount: int) -> None:
        """Uses up what became known only afterwards; the amount left may fall below 0, which later requests wait for."""
        quota = self._quotas[kind]
        if not quota.amount:
            return
        with self._lock:
            for bucket, _ in self._of(client, kind, quota):
                bucket.level -= amount

    def check(self, client: Client, kind: Kind) -> None:
        """Raises QuotaExceeded where nothing of an amount is left; uses none."""
        if self._quotas[kind].amount:
            self.charge(client, kind, 1)
            self.settle(client, kind, -1)

    def _of(self, client: Client, kind: Kind, quota: Quota) -> list[tuple[_Bucket, int]]:
        """Returns the buckets of a client, filled up to now, each with how many times the quota it holds."""
        names = [(f"address {client.address}", ADDRESS_FACTOR)]
        if client.owner is not None:
            names.insert(0, (client.owner, 1))
        else:
            names.insert(0, (f"nobody at {client.address}", 1))
        return [(self._filled((kind, name), quota, factor), factor) for name, factor in names]

    def _filled(self, key: tuple[Kind, str], quota: Quota, factor: int) -> _Bucket:
        now, full = self._clock(), float(quota.amount * factor)
        bucket = self._buckets.pop(key, None) or _Bucket(full, now)
        bucket.level = min(full, bucket.level + (now - bucket.at_s) * quota.rate_per_s * factor)
        bucket.at_s = now
        # Used last, so forgotten last.
        self._buckets[key] = bucket
        while len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return bucket


def _shown(kind: Kind, amount: int) -> str:
    return f"{amount / MIB:.3g}" if kind == "upload_bytes" else f"{amount:,}"
