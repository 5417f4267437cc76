"""Times the attention with other tiles than the table's, on a GPU that is present; nothing here runs unless called."""

from typing import NamedTuple

from torch import Tensor
from triton.runtime.errors import OutOfResources
from triton.testing import do_bench

from kernels.batch import RowBatch
from kernels.device_code import capability
from kernels.sparse_prefill_attention import sparse_prefill_attention
from kernels.tiles import Tile, attention_candidates


class TimedTile(NamedTuple):
    """A tile and its median time, None where the GPU has not the shared memory for it."""

    tile: Tile
    time_ms: float | None


def time_tiles(query: Tensor, keys: Tensor, values: Tensor, rows: RowBatch) -> list[TimedTile]:
    """Returns the table's tile, then all others worth trying, fastest first; arguments as of `sparse_prefill_attention`.

    Every tile is compiled first, seconds each. Raises ValueError where the tensors are not on a GPU.
    """
    own = capability(query.device)
    if own is None:
        raise ValueError(f"The tensors are on {query.device}; tiles can be timed on a GPU only.")
    timed = [TimedTile(tile, _time_ms(query, keys, values, rows, tile)) for tile in attention_candidates(own, query.shape[-1])]
    return [timed[0], *sorted(timed[1:], key=lambda found: float("inf") if found.time_ms is None else found.time_ms)]


def _time_ms(query: Tensor, keys: Tensor, values: Tensor, rows: RowBatch, tile: Tile) -> float | None:
    try:
        return float(
            do_bench(lambda: sparse_prefill_attention(query, keys, values, rows, tile=tile), warmup=10, rep=40, return_mode="median")
        )
    except OutOfResources:
        return None
