"""Where a layer of context KV waits between its file and its place in a request's cache.

A slot is filled by the reader's thread and taken by the request's; at most as many layers as there are slots are under way.
"""

from typing import Protocol

import torch

from engine.model.cache import RequestCache
from engine.recorder import Recorder
from kernels.batch import KeysValues


class Staging(Protocol):
    """Slots for layers [context, Hkv, D], each filled, taken and released in turn. A layer's slot is layer modulo the number of slots.

    `values_in_place`: values are read to their place in the cache, from where `taken` returns them.
    """

    values_in_place: bool

    def host(self, layer: int) -> KeysValues:
        """Returns host memory to read a layer into, once the layer before it in the slot has left it."""

    def filled(self, layer: int, keys: bool = True, values: bool = True) -> None:
        """Says that the layer has been read, or one half of it."""

    def taken(self, layer: int) -> KeysValues:
        """Returns the layer on the device; what is computed from now on finds it there."""

    def released(self, layer: int) -> None:
        """Says that nothing will be computed from the slot's layer any more, once what is under way is done."""

    def close(self) -> None:
        """Lets go of the memory, safe while copies are under way."""


class HostStaging:
    """For a device in the host's own memory: keys wait in a buffer, values are read straight to their place, as nothing rotates them.

    Where one pass puts both into the cache, values wait in a buffer too.
    """

    def __init__(self, shape: tuple[int, ...], num_slots: int, cache: RequestCache, values_in_place: bool = True) -> None:
        self.values_in_place = values_in_place
        self._keys = [torch.empty(shape, dtype=cache.keys.dtype) for _ in range(num_slots)]
        self._values = [] if values_in_place else [torch.empty(shape, dtype=cache.values.dtype) for _ in range(num_slots)]
        self._cached, self._context = cache.values, shape[0]

    def host(self, layer: int) -> KeysValues:
        """Returns a buffer for keys, and for values theirs or their place in the cache."""
        slot = layer % len(self._keys)
        return KeysValues(self._keys[slot], self._cached[layer, : self._context] if self.values_in_place else self._values[slot])

    def filled(self, layer: int, keys: bool = True, values: bool = True) -> None:
        """Does nothing: what is read is there."""

    def taken(self, layer: int) -> KeysValues:
        """Returns what was read."""
        return self.host(layer)

    def released(self, layer: int) -> None:
        """Does nothing: the request's thread has computed what it wanted."""

    def close(self) -> None:
        """Does nothing."""


class DeviceStaging:
    """For a GPU: pinned host memory, a copy stream of its own, and as many buffers on the device.

    Reading layer i + 2, copying i + 1 and computing i run at once. Events order them: a pinned slot is read into again when
    the copy out of it is done, a device slot copied into again when the layer computed from it is done.
    """

    values_in_place = False

    def __init__(self, shape: tuple[int, ...], num_slots: int, cache: RequestCache, recorder: Recorder) -> None:
        def pair(**where: object) -> KeysValues:
            return KeysValues(*(torch.empty(shape, dtype=cache.keys.dtype, **where) for _ in range(2)))

        device = cache.keys.device
        self._recorder = recorder
        self._host = [pair(pin_memory=True) for _ in range(num_slots)]
        self._device = [pair(device=device) for _ in range(num_slots)]
        self._copies = torch.cuda.Stream(device)
        # The buffers may have been freed by work that is still queued on the stream they were made on.
        self._copies.wait_stream(torch.cuda.current_stream(device))
        self._copied: list[torch.cuda.Event | None] = [None] * num_slots
        self._free: list[torch.cuda.Event | None] = [None] * num_slots

    def host(self, layer: int) -> KeysValues:
        """Returns pinned memory; waits on the host until the last copy out of it is done."""
        slot = layer % len(self._host)
        copied = self._copied[slot]
        if copied is not None:
            copied.synchronize()
        return self._host[slot]

    def filled(self, layer: int, keys: bool = True, values: bool = True) -> None:
        """Queues the copy to the device and records it as a span of the copy lane."""
        slot = layer % len(self._host)
        free, (first, last) = self._free[slot], (torch.cuda.Event(enable_timing=True) for _ in range(2))
        halves = zip(self._device[slot], self._host[slot], (keys, values), strict=True)
        wanted = [(target, source) for target, source, is_wanted in halves if is_wanted]
        # The reader's thread does not inherit the request's inference mode, in which the buffers were made.
        with torch.inference_mode(), torch.cuda.stream(self._copies):
            if free is not None:
                self._copies.wait_event(free)
            first.record(self._copies)
            for target, source in wanted:
                target.copy_(source, non_blocking=True)
            last.record(self._copies)
        self._copied[slot] = last
        self._recorder.add_events("copy", "load", layer, first, last, sum(source.nbytes for _, source in wanted))

    def taken(self, layer: int) -> KeysValues:
        """Makes the computing stream wait for the copy and returns the device's buffers."""
        slot = layer % len(self._host)
        copied = self._copied[slot]
        assert copied is not None, f"layer {layer} was taken before it was read"
        torch.cuda.current_stream(self._copies.device).wait_event(copied)
        return self._device[slot]

    def released(self, layer: int) -> None:
        """Marks the point of the computing stream from which the slot may be copied into."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self._copies.device))
        self._free[layer % len(self._host)] = event

    def close(self) -> None:
        """Keeps the device's memory from other use until the copies are done."""
        for pair in self._device:
            for buffer in pair:
                buffer.record_stream(self._copies)
