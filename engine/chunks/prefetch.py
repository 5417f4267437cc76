"""Brings the stored KV of a request's context into its cache, layer by layer, ahead of the device.

One reader thread works at most `depth` layers ahead; the request's thread rotates keys into place and hands the
slot back. Without the thread (`depth=0`) the same reads happen when a layer is asked for: the same bits.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.chunks.file import StoredChunk
from engine.chunks.staging import DeviceStaging, HostStaging, Staging
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.recorder import Recorder
from kernels.batch import KeysValues


@dataclass(frozen=True, slots=True)
class Placed:
    """A stored chunk and its [start, stop) positions in the prompt; `is_exact` where full prefill would give the same KV.

    The first one has no chunk where its KV is in the request's cache before anything else: an exact prefix, found or computed there.
    """

    chunk: StoredChunk | None
    start: int
    stop: int
    is_exact: bool = False


class ContextLoader:
    """Loads the placed chunks of one request; owned by that request, closed at its end.

    Args:
        placed: contiguous from position 0, in order: the system part or what is there already, then the chunks.
        depth: layers read ahead, at least 2 where there is a reader thread; 0 reads when asked.
        rope_positions: int64 [context], rotary positions where they are not those in the cache.
    """

    def __init__(
        self,
        decoder: Decoder,
        placed: Sequence[Placed],
        cache: RequestCache,
        recorder: Recorder,
        depth: int = 2,
        rope_positions: Tensor | None = None,
    ) -> None:
        self._decoder, self._cache, self._recorder = decoder, cache, recorder
        self._placed = tuple(p for p in placed if p.chunk is not None)
        self.context_len = placed[-1].stop if placed else 0
        self._resident_len = resident_len(placed)
        cos, sin = decoder.rope(torch.arange(self.context_len) if rope_positions is None else rope_positions)
        shape, self._num_slots = (self.context_len, decoder.spec.num_kv_heads, decoder.spec.head_dim), max(1, depth)
        on_host = decoder.device.type == "cpu"
        # On a CPU spread over the heads once, for all layers: the rotation then runs through memory without a broadcast.
        spread = decoder.spec.num_kv_heads if on_host else 1
        self._cos, self._sin = (table.expand(-1, spread, -1).contiguous() for table in (cos, sin))
        self._staging: Staging = (
            HostStaging(shape, self._num_slots, cache, values_in_place=not decoder.ops.has_own("rotate_scatter_keys"))
            if on_host
            else DeviceStaging(shape, self._num_slots, cache, recorder)
        )
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="kv-reader") if depth else None
        # Layers whose keys, and whose keys and values, are in the cache already.
        self._keys_there: set[int] = set()
        self._there: set[int] = {0}
        self._wanted: tuple[Placed, ...] = ()
        self._reads: dict[int, Future[None]] = {}
        self.loaded_bytes = 0

    def load_keys(self, layer: int) -> Tensor:
        """Returns the rotated keys [context, Hkv, D] of one layer, read at once; `place` does not read them again.

        Raises StoreError.
        """
        self._read(layer, self._placed, values=False)
        self._rotate(layer, self._placed)
        self._staging.released(layer)
        self._recorder.synchronize()
        self._keys_there.add(layer)
        return self._cache.keys[layer, : self.context_len]

    def load_values(self, layer: int) -> Tensor:
        """Returns the stored values [context, Hkv, D] of one layer, read at once; good until that layer is written. Raises StoreError."""
        self._read(layer, self._placed, keys=False)
        values = self._staging.taken(layer).values
        if not self._staging.values_in_place:
            values = values.clone()
            values[: self._resident_len] = self._cache.values[layer, : self._resident_len]
        self._staging.released(layer)
        return values

    def start(self, rows: Tensor | None = None, first_layer: int = 1) -> None:
        """Begins to read, for `place` to put there.

        Args:
            rows: int64 [R], sorted, rows that are recomputed: a chunk recomputed whole is not read. None reads all.
            first_layer: layers below it are in the cache already; layer 0 is exact from the embeddings and never read.
        """
        self._there |= set(range(first_layer))
        self._wanted = self._placed if rows is None else self._not_whole(rows)
        for layer in range(first_layer, first_layer + self._num_slots):
            self._submit(layer)

    def place(self, layer: int) -> None:
        """Waits until a layer's KV is there and puts it into the cache, keys rotated. Raises StoreError."""
        if self._wanted and layer not in self._there:
            self._place(layer)
        self._submit(layer + self._num_slots)

    def take(self, layer: int) -> KeysValues | None:
        """Waits until a layer's KV is there and returns it [context, Hkv, D], keys not rotated, for the caller to put into the cache.

        Rows of chunks that are recomputed whole, and of what was in the cache from the start, may hold anything. None where the
        cache has the layer, or its keys, already: `place` does what is left. Needs values that are not read in place. Raises StoreError.
        """
        if not self._wanted or layer in self._there or layer in self._keys_there:
            return None
        self._await(layer)
        return self._staging.taken(layer)

    def put(self, layer: int) -> None:
        """Says that a taken layer is in the cache, once what is queued is done, and hands its slot back."""
        self._staging.released(layer)
        self._there.add(layer)
        self._submit(layer + self._num_slots)

    def close(self) -> None:
        """Stops the reader, waits for it and closes the files; safe after an error and when called twice."""
        if self._reader is not None:
            self._reader.shutdown(wait=True, cancel_futures=True)
        self._staging.close()
        for p in self._placed:
            p.chunk.close()

    def _not_whole(self, rows: Tensor) -> tuple[Placed, ...]:
        """Returns the chunks that `rows` does not cover."""
        bounds = torch.tensor([[p.start, p.stop] for p in self._placed], device=rows.device).reshape(-1, 2)
        counts = torch.searchsorted(rows, bounds[:, 1].contiguous()) - torch.searchsorted(rows, bounds[:, 0].contiguous())
        return tuple(p for p, n in zip(self._placed, counts.tolist(), strict=True) if n < p.stop - p.start)

    def _await(self, layer: int) -> None:
        """Waits until a layer is in its slot, which is the request's stall."""
        with self._recorder.device("load_wait", layer):
            if self._reader is None:
                self._read(layer, self._wanted, keys=layer not in self._keys_there)
            else:
                self._reads.pop(layer).result()
            self._staging.taken(layer)

    def _place(self, layer: int) -> None:
        self._await(layer)
        values = self._staging.taken(layer).values
        if layer not in self._keys_there:
            self._rotate(layer, self._wanted)
        if not self._staging.values_in_place:
            for start, stop in _ranges(self._wanted):
                self._cache.values[layer, start:stop].copy_(values[start:stop])
        self._staging.released(layer)
        self._there.add(layer)

    def _submit(self, layer: int) -> None:
        if self._reader is None or not self._wanted or layer in self._there or layer >= self._decoder.spec.num_layers:
            return
        if layer not in self._reads:
            self._reads[layer] = self._reader.submit(self._read, layer, self._wanted, keys=layer not in self._keys_there)

    def _read(self, layer: int, wanted: Sequence[Placed], keys: bool = True, values: bool = True) -> None:
        """Reads chunks' K, V or both of one layer into its slot. Raises StoreError."""
        host, size = self._staging.host(layer), 0
        start = self._recorder.now()
        for p in wanted:
            if keys:
                size += p.chunk.read_keys(layer, host.keys[p.start : p.stop])
            if values:
                size += p.chunk.read_values(layer, host.values[p.start : p.stop])
        self.loaded_bytes += size
        self._recorder.add("disk", "load", layer, start, self._recorder.now(), size)
        self._staging.filled(layer, keys, values)

    def _rotate(self, layer: int, placed: Sequence[Placed]) -> None:
        keys = self._staging.taken(layer).keys
        for start, stop in _ranges(placed):
            at = slice(start, stop)
            self._decoder.ops.rotate_keys(keys[at], self._cos[at], self._sin[at], self._cache.keys[layer, at])


def resident_len(placed: Sequence[Placed]) -> int:
    """Returns how many of the first tokens are in the request's cache before anything is loaded."""
    return placed[0].stop if placed and placed[0].chunk is None else 0


def _ranges(placed: Sequence[Placed]) -> list[tuple[int, int]]:
    """Returns the position ranges of chunks, neighbours joined."""
    ranges: list[tuple[int, int]] = []
    for p in placed:
        if ranges and ranges[-1][1] == p.start:
            ranges[-1] = (ranges[-1][0], p.stop)
        else:
            ranges.append((p.start, p.stop))
    return ranges
