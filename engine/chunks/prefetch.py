"""Brings the stored KV of a request's context into its cache, layer by layer, ahead of the device.

One reader thread works at most `depth` layers ahead; the request's thread rotates keys into place and hands the
buffer back. Without the thread (`depth=0`) the same reads happen when a layer is asked for: the same bits.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.chunks.file import StoredChunk
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder
from engine.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Placed:
    """A stored chunk and its [start, stop) positions in the prompt; `is_exact` where full prefill would give the same KV."""

    chunk: StoredChunk
    start: int
    stop: int
    is_exact: bool = False


class ContextLoader:
    """Loads the placed chunks of one request; owned by that request, closed at its end.

    Args:
        placed: contiguous from position 0, in order: the system part, then the chunks.
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
        self._placed = tuple(placed)
        self.context_len = self._placed[-1].stop if self._placed else 0
        cos, sin = decoder.rope(torch.arange(self.context_len) if rope_positions is None else rope_positions)
        # Spread over the heads once, for all layers: the rotation then runs through memory without a broadcast.
        self._cos, self._sin = (table.expand(-1, decoder.spec.num_kv_heads, -1).contiguous() for table in (cos, sin))
        self._in_place = decoder.device.type == "cpu"
        shape = (self.context_len, decoder.spec.num_kv_heads, decoder.spec.head_dim)
        self._buffers = [_Buffer(shape, decoder.dtype, pinned=not self._in_place) for _ in range(max(1, depth))]
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
        buffer = self._buffers[0]
        start = self._recorder.now()
        size = sum(p.chunk.read_keys(layer, buffer.keys[p.start : p.stop]) for p in self._placed)
        self._recorder.add("disk", "load", layer, start, self._recorder.now(), size)
        self.loaded_bytes += size
        self._rotate(layer, buffer, self._placed)
        self._recorder.synchronize()
        self._keys_there.add(layer)
        return self._cache.keys[layer, : self.context_len]

    def load_values(self, layer: int) -> Tensor:
        """Returns the stored values [context, Hkv, D] of one layer, read at once. Raises StoreError."""
        target = self._cache.values[layer] if self._in_place else self._buffers[0].values
        start = self._recorder.now()
        size = sum(p.chunk.read_values(layer, target[p.start : p.stop]) for p in self._placed)
        self._recorder.add("disk", "load", layer, start, self._recorder.now(), size)
        self.loaded_bytes += size
        return target[: self.context_len].to(self._decoder.device)

    def start(self, rows: Tensor | None = None, first_layer: int = 1) -> None:
        """Begins to read, for `place` to put there.

        Args:
            rows: int64 [R], sorted, rows that are recomputed: a chunk recomputed whole is not read. None reads all.
            first_layer: layers below it are in the cache already; layer 0 is exact from the embeddings and never read.
        """
        self._there |= set(range(first_layer))
        self._wanted = self._placed if rows is None else self._not_whole(rows)
        for layer in range(first_layer, first_layer + len(self._buffers)):
            self._submit(layer)

    def place(self, layer: int) -> None:
        """Waits until a layer's KV is there and puts it into the cache, keys rotated. Raises StoreError."""
        if self._wanted and layer not in self._there:
            self._place(layer)
        self._submit(layer + len(self._buffers))

    def close(self) -> None:
        """Stops the reader, waits for it and closes the files; safe after an error and when called twice."""
        if self._reader is not None:
            self._reader.shutdown(wait=True, cancel_futures=True)
        for p in self._placed:
            p.chunk.close()

    def _not_whole(self, rows: Tensor) -> tuple[Placed, ...]:
        """Returns the chunks that `rows` does not cover."""
        bounds = torch.tensor([[p.start, p.stop] for p in self._placed], device=rows.device).reshape(-1, 2)
        counts = torch.searchsorted(rows, bounds[:, 1].contiguous()) - torch.searchsorted(rows, bounds[:, 0].contiguous())
        return tuple(p for p, n in zip(self._placed, counts.tolist(), strict=True) if n < p.stop - p.start)

    def _place(self, layer: int) -> None:
        start = self._recorder.now()
        if self._reader is None:
            self._read(layer, self._wanted)
        else:
            self._reads.pop(layer).result()
        self._recorder.add("device", "load_wait", layer, start, self._recorder.now())
        buffer = self._buffer(layer)
        if layer not in self._keys_there:
            self._rotate(layer, buffer, self._wanted)
        if not self._in_place:
            for p in self._wanted:
                self._cache.values[layer, p.start : p.stop].copy_(buffer.values[p.start : p.stop], non_blocking=True)
            # The pinned buffer is refilled next, so the copies out of it must be done.
            self._recorder.synchronize()
        self._there.add(layer)

    def _submit(self, layer: int) -> None:
        if self._reader is None or not self._wanted or layer in self._there or layer >= self._decoder.spec.num_layers:
            return
        if layer not in self._reads:
            self._reads[layer] = self._reader.submit(self._read, layer, self._wanted)

    def _buffer(self, layer: int) -> "_Buffer":
        return self._buffers[layer % len(self._buffers)]

    def _read(self, layer: int, wanted: Sequence[Placed]) -> None:
        buffer, start, size = self._buffer(layer), self._recorder.now(), 0
        # On the CPU values go straight to their place: they need no rotation.
        values = self._cache.values[layer] if self._in_place else buffer.values
        for p in wanted:
            if layer not in self._keys_there:
                size += p.chunk.read_keys(layer, buffer.keys[p.start : p.stop])
            size += p.chunk.read_values(layer, values[p.start : p.stop])
        self.loaded_bytes += size
        self._recorder.add("disk", "load", layer, start, self._recorder.now(), size)

    def _rotate(self, layer: int, buffer: "_Buffer", placed: Sequence[Placed]) -> None:
        for start, stop in _ranges(placed):
            raw = buffer.keys[start:stop].to(self._decoder.device, non_blocking=True)
            self._decoder.ops.rotate_keys(raw, self._cos[start:stop], self._sin[start:stop], self._cache.keys[layer, start:stop])


class _Buffer:
    """Staging memory for one layer: keys always, values only where they cannot be read into place."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, pinned: bool) -> None:
        self.keys = torch.empty(shape, dtype=dtype, pin_memory=pinned)
        self.values = torch.empty(shape if pinned else (0,), dtype=dtype, pin_memory=pinned)


def _ranges(placed: Sequence[Placed]) -> list[tuple[int, int]]:
    """Returns the position ranges of chunks, neighbours joined."""
    ranges: list[tuple[int, int]] = []
    for p in placed:
        if ranges and ranges[-1][1] == p.start:
            ranges[-1] = (ranges[-1][0], p.stop)
        else:
            ranges.append((p.start, p.stop))
    return ranges
