"""The KV cache of one request: rotated keys and values of all layers, at their positions."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows behind the context read it; the plain way unless a method says otherwise.

    Args:
        start, stop: the context's positions in the cache; keys outside are read plainly.
        temperature: divides the scores of context keys.
        scale: multiplies the context's log-sum-exp before both parts are weighed.
        rope_offset: added to a position in the cache to get the rotary position of rows behind the context.
    """

    start: int = 0
    stop: int = 0
    temperature: float = 1.0
    scale: float = 1.0
    rope_offset: int = 0

    @property
    def is_weighted(self) -> bool:
        """Returns whether context keys count differently from others."""
        return (self.temperature, self.scale) != (1.0, 1.0)


PLAIN = Reading()


class RequestCache:
    """K and V of one request, [L, capacity, Hkv, D] each, rotated. Owned by one request at a time, reused by the next.

    A probe that ends early asks for its own `num_layers` instead of all L. `reading` belongs to the present request.

    The memory is touched when it is made, so that no request pays for its first use.
    """

    def __init__(self, spec: ModelSpec, capacity: int, dtype: torch.dtype, device: torch.device, num_layers: int | None = None) -> None:
        layers = spec.num_layers if num_layers is None else num_layers
        # Keys lie head by head, as attention multiplies with them; values as they are read from files, straight into place.
        keys = torch.zeros(layers, spec.num_kv_heads, capacity, spec.head_dim, dtype=dtype, device=device)
        self.keys: Tensor = keys.transpose(1, 2)
        self.values: Tensor = torch.zeros(layers, capacity, spec.num_kv_heads, spec.head_dim, dtype=dtype, device=device)
        self.reading = PLAIN

    @property
    def capacity(self) -> int:
        """Returns the number of positions there is room for."""
        return self.keys.shape[1]

    @property
    def size_bytes(self) -> int:
        """Returns the bytes of both tensors."""
        return 2 * self.keys.numel() * self.keys.element_size()


class CachePool:
    """Caches kept for reuse, so that requests start on memory that is already there; not thread-safe."""

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, device: torch.device) -> None:
        self._spec, self._dtype, self._device = spec, dtype, device
        self._caches: dict[str, RequestCache] = {}

    def get(self, role: str, capacity: int) -> RequestCache:
        """Returns the cache of a role ("full", "method"), read plainly and made anew only when it is too small."""
        cache = self._caches.get(role)
        if cache is None or cache.capacity < capacity:
            self._caches.pop(role, None)
            rounded = -(-capacity // 256) * 256
            cache = RequestCache(self._spec, rounded, self._dtype, self._device)
            self._caches[role] = cache
        cache.reading = PLAIN
        return cache
