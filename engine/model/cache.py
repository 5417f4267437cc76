"""The KV cache of one request: rotated keys and values of all layers, at their positions."""

import torch
from torch import Tensor

from engine.model.spec import ModelSpec


class RequestCache:
    """K and V of one request, [L, capacity, Hkv, D] each, rotated. Owned by one request at a time, reused by the next.

    A probe that ends early asks for its own `num_layers` instead of all L.

    The memory is touched when it is made, so that no request pays for its first use.
    """

    def __init__(self, spec: ModelSpec, capacity: int, dtype: torch.dtype, device: torch.device, num_layers: int | None = None) -> None:
        shape = (spec.num_layers if num_layers is None else num_layers, capacity, spec.num_kv_heads, spec.head_dim)
        self.keys: Tensor = torch.zeros(shape, dtype=dtype, device=device)
        self.values: Tensor = torch.zeros(shape, dtype=dtype, device=device)

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
        """Returns the cache of a role ("full", "method"), made anew only when it is too small."""
        cache = self._caches.get(role)
        if cache is None or cache.capacity < capacity:
            self._caches.pop(role, None)
            rounded = -(-capacity // 256) * 256
            cache = RequestCache(self._spec, rounded, self._dtype, self._device)
            self._caches[role] = cache
        return cache
