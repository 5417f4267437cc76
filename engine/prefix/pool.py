"""The paged KV pool: a fixed amount of device memory, cut into pages of one block each. Knows nothing of trees or policies.

Keys are stored rotated: a block's place in the prompt is part of its identity, so its positions never change, and reading it back
is a copy of the very bits that the request which computed it attended to. (The chunk store, whose passages move, keeps them
before the rotary embedding.) A request reads its prefix from a contiguous cache, as the products of attention need it on a CPU,
so matched pages are gathered once a request: 2 x layers x KV heads x head size numbers a token, 0.046 MB for the bundled model.
"""

import numpy as np
import torch
from torch import Tensor

from engine.errors import BadRequest
from engine.model.cache import RequestCache
from engine.model.spec import ModelSpec

MIB = 2**20


def page_bytes(spec: ModelSpec, block_tokens: int, dtype: torch.dtype) -> int:
    """Returns the bytes of one page: keys and values of a block in all layers."""
    return 2 * spec.num_layers * spec.num_kv_heads * spec.head_dim * block_tokens * dtype.itemsize


def pages_within(size_bytes: float, spec: ModelSpec, block_tokens: int, dtype: torch.dtype) -> int:
    """Returns how many pages fit into a number of bytes. Raises BadRequest where not even one does."""
    one = page_bytes(spec, block_tokens, dtype)
    if not (np.isfinite(size_bytes) and size_bytes >= one):
        raise BadRequest(
            f"The prefix cache is given {size_bytes:,} bytes; one block of {block_tokens} tokens takes {one:,} with this model, "
            "so give it at least as many."
        )
    return int(size_bytes // one)


class PagePool:
    """Pages of `block_tokens` tokens. Its memory is taken, and touched, when it is made, and never grows.

    Args:
        num_pages: at least 1.

    Raises BadRequest where the device has no room for it.
    """

    def __init__(self, spec: ModelSpec, num_pages: int, block_tokens: int, dtype: torch.dtype, device: torch.device) -> None:
        if num_pages < 1 or block_tokens < 1:
            raise BadRequest(f"The prefix cache is {num_pages} blocks of {block_tokens} tokens; both numbers must be at least 1.")
        self.num_pages, self.block_tokens, self.device = num_pages, block_tokens, device
        width = block_tokens * spec.head_dim
        try:
            # As in a request's cache, keys lie head by head and values token by token.
            self._keys = torch.zeros(spec.num_layers, spec.num_kv_heads, num_pages, width, dtype=dtype, device=device)
            self._values = torch.zeros(spec.num_layers, num_pages, spec.num_kv_heads * width, dtype=dtype, device=device)
        except RuntimeError as error:
            size = num_pages * page_bytes(spec, block_tokens, dtype) / MIB
            raise BadRequest(f"A prefix cache of {size:,.0f} MiB does not fit on {device}; choose a smaller capacity.") from error

    @property
    def size_bytes(self) -> int:
        """Returns the bytes of all pages, used or not."""
        return self._keys.nbytes + self._values.nbytes

    @property
    def page_bytes(self) -> int:
        """Returns the bytes of one page."""
        return self.size_bytes // self.num_pages

    def load(self, pages: np.ndarray, cache: RequestCache) -> None:
        """Copies pages int [n] to the first n blocks of a request's cache."""
        if not len(pages):
            return
        at = self._index(pages)
        keys, values = self._blocks(cache, 0, len(pages))
        torch.index_select(self._keys, 2, at, out=keys)
        torch.index_select(self._values, 1, at, out=values)

    def store(self, pages: np.ndarray, first_block: int, cache: RequestCache) -> None:
        """Copies blocks `first_block` .. `first_block` + n - 1 of a request's cache to pages int [n]."""
        if not len(pages):
            return
        at = self._index(pages)
        keys, values = self._blocks(cache, first_block, len(pages))
        self._keys.index_copy_(2, at, keys)
        self._values.index_copy_(1, at, values)

    def _blocks(self, cache: RequestCache, first: int, num: int) -> tuple[Tensor, Tensor]:
        """Returns views of a request's blocks, shaped as the pool's: keys [L, Hkv, num, bt D], values [L, num, bt Hkv D]."""
        size = self.block_tokens
        span = slice(first * size, (first + num) * size)
        assert span.stop <= cache.capacity, "the request's cache is too small for its blocks"
        keys = cache.keys.transpose(1, 2)[:, :, span].unflatten(2, (num, size)).flatten(3)
        values = cache.values[:, span].unflatten(1, (num, size)).flatten(2)
        assert keys.data_ptr() == cache.keys[:, span].data_ptr() and values.data_ptr() == cache.values[:, span].data_ptr()
        return keys, values

    def _index(self, pages: np.ndarray) -> Tensor:
        return torch.from_numpy(pages.astype(np.int64)).to(self.device)
