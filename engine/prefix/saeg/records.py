"""Blocks that wait for reuse, counted together: one record a request and class, and a column that says which a block waits in.

A record ends block by block: by reuse (an event), by being forgotten (censored), or after 9,470 s. Exposure, the block-seconds
spent waiting at each age, is added as time goes by.
"""

import numpy as np

from engine.prefix.saeg.buckets import HI, LO, NUM_BUCKETS, TOP_S, bucket, overlaps

NO_RECORD = -1
_SLOT_BITS = 32
_SLOT_MASK = (1 << _SLOT_BITS) - 1
_HI, _LO = HI.tolist(), LO.tolist()


class Records:
    """Open records, in slots that are used again under a new generation.

    Args:
        num_rows: of the cache's columns; num_classes: of the counts.

    `events` and `exposure` float64 [num_classes, 27] are reuses and block-seconds by age; `num_blocks` and `num_requests` float64
    [num_classes] are blocks and records begun.
    """

    def __init__(self, num_rows: int, num_classes: int) -> None:
        self.events, self.exposure = np.zeros((num_classes, NUM_BUCKETS)), np.zeros((num_classes, NUM_BUCKETS))
        self.num_blocks, self.num_requests = np.zeros(num_classes), np.zeros(num_classes)
        self._record = np.full(num_rows, NO_RECORD, np.int64)
        self._record_at = memoryview(self._record)
        self._exposure_at, self._events_at = memoryview(self.exposure), memoryview(self.events)
        self._number: list[int] = []
        self._begun_s: list[float] = []
        self._seen_s: list[float] = []
        self._count: list[int] = []
        self._generation: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._number) - len(self._free)

    def use(self, path: np.ndarray, num_prompt: int, now_s: float) -> None:
        """Ends the waiting of a path's blocks: prompt blocks were reused, an answer's were computed anew."""
        codes = self._record[path]
        if not len(codes):
            return
        # At once: a block of the path may be forgotten while room is made for the rest of it.
        self._record[path] = NO_RECORD
        starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()]
        waiting: dict[int, list[int]] = {}
        for start, stop, code in zip(starts, [*starts[1:], len(codes)], codes[starts].tolist(), strict=True):
            counts = waiting.setdefault(code, [0, 0])
            counts[0] += stop - start
            counts[1] += max(min(stop, num_prompt) - start, 0)
        for code, (num, num_reused) in waiting.items():
            slot = self._slot(code)
            if slot is None:
                continue
            number, age_s = self._number[slot], now_s - self._begun_s[slot]
            self._expose(number, self._seen_s[slot] - self._begun_s[slot], age_s, num)
            if num_reused and age_s < TOP_S:
                self._events_at[number, bucket(age_s)] += num_reused
            self._count[slot] -= num

    def wait(self, blocks: np.ndarray, numbers: np.ndarray, now_s: float) -> None:
        """Begins the waiting of blocks in classes, both int64 [n]."""
        found, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        codes = np.empty(len(found), np.int64)
        for i, (number, count) in enumerate(zip(found.tolist(), counts.tolist(), strict=True)):
            codes[i] = self._open(number, count, now_s)
        self.num_blocks[found] += counts
        self.num_requests[found] += 1.0
        self._record[blocks] = codes[inverse]

    def forget(self, block: int, now_s: float) -> None:
        """Ends the waiting of a block that nobody remembers from now on: censored, not "never reused"."""
        slot = self._slot(self._record_at[block])
        self._record_at[block] = NO_RECORD
        if slot is not None:
            self._expose(self._number[slot], self._seen_s[slot] - self._begun_s[slot], now_s - self._begun_s[slot], 1)
            self._count[slot] -= 1

    def catch_up(self, now_s: float) -> None:
        """Adds the exposure of all open records up to now; drops those that are empty or too old."""
        slots = np.array([slot for slot, number in enumerate(self._number) if number >= 0], np.int64)
        if not len(slots):
            return
        begun, seen = np.array(self._begun_s)[slots], np.array(self._seen_s)[slots]
        numbers, counts = np.array(self._number)[slots], np.array(self._count)[slots]
        seconds = overlaps(seen - begun, now_s - begun) * counts[:, None]
        places = numbers[:, None] * NUM_BUCKETS + np.arange(NUM_BUCKETS)
        self.exposure += np.bincount(places.ravel(), seconds.ravel(), self.exposure.size).reshape(self.exposure.shape)
        for slot, count, age_s in zip(slots.tolist(), counts.tolist(), (now_s - begun).tolist(), strict=True):
            if count <= 0 or age_s > TOP_S:
                self._close(slot)
            else:
                self._seen_s[slot] = now_s

    def decay(self, factor: float) -> None:
        """Lets everything counted so far weigh less."""
        for counts in (self.events, self.exposure, self.num_blocks, self.num_requests):
            counts *= factor

    def _slot(self, code: int) -> int | None:
        """Returns the slot of an open record, None where it was closed since."""
        if code < 0:
            return None
        slot = code & _SLOT_MASK
        return slot if self._generation[slot] == code >> _SLOT_BITS else None

    def _open(self, number: int, count: int, now_s: float) -> int:
        if self._free:
            slot = self._free.pop()
            self._number[slot], self._count[slot] = number, count
            self._begun_s[slot] = self._seen_s[slot] = now_s
        else:
            slot = len(self._number)
            self._number.append(number)
            self._count.append(count)
            self._begun_s.append(now_s)
            self._seen_s.append(now_s)
            self._generation.append(0)
        return self._generation[slot] << _SLOT_BITS | slot

    def _close(self, slot: int) -> None:
        self._number[slot] = -1
        self._generation[slot] += 1
        self._free.append(slot)

    def _expose(self, number: int, start_s: float, stop_s: float, count: int) -> None:
        """Adds `count` blocks' waiting from one age to another."""
        i = bucket(start_s)
        while i < NUM_BUCKETS and _LO[i] < stop_s:
            self._exposure_at[number, i] += count * (min(stop_s, _HI[i]) - max(start_s, _LO[i]))
            i += 1
