"""The rows of a prompt that are computed afresh, cut into blocks that share a key range."""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

STACKED_ROWS = 384


class RowBlock(NamedTuple):
    """Rows [start, stop) of the query see keys [0, key_end); `mask` is added to their scores of keys from `mask_start` on.

    mask: [(stop - start) group, key_end - mask_start], 0 where visible and -inf elsewhere, each row repeated for the query
    heads that share a KV head (they are stacked as rows of one head), or None where all keys are visible.
    """

    start: int
    stop: int
    key_end: int
    mask_start: int
    mask: Tensor | None


@dataclass(frozen=True, eq=False, slots=True)
class RowSet:
    """Sorted positions of the computed rows, and the causal blocks that attention works through.

    Args:
        positions: int64 [R], sorted, unique: index of every row among the keys.
        blocks: in order; a block's keys stop at the position of its last row, so nothing later is read.
        is_prefix: the rows are 0..R-1, plain causal attention.
    """

    positions: Tensor
    blocks: tuple[RowBlock, ...]
    is_prefix: bool

    @property
    def num_rows(self) -> int:
        """Returns R."""
        return self.positions.shape[0]


def row_set(positions: Tensor, group: int, dtype: torch.dtype) -> RowSet:
    """Returns the row set of int64 positions [R] on their device, for `group` query heads per KV head.

    Raises ValueError when the positions are not sorted and unique.
    """
    num_rows = positions.shape[0]
    host = positions.tolist()
    if num_rows == 0 or any(a >= b for a, b in itertools.pairwise(host)):
        raise ValueError(f"row positions must be sorted, unique and at least one; got {num_rows} rows")
    # Keys behind a block's last row are never touched, so finer blocks waste less; coarser ones make larger products. With
    # the heads of a group stacked, 384 rows keep a block's scores near the caches and torch's own kernel equally busy.
    num_blocks = -(-num_rows // max(1, STACKED_ROWS // group))
    cuts = [num_rows * i // num_blocks for i in range(num_blocks + 1)]
    blocks = []
    for start, stop in itertools.pairwise(cuts):
        key_end = host[stop - 1] + 1
        # Up to its first row every row of the block sees everything, so the mask begins behind it.
        mask_start = host[start] + 1
        mask = _causal_mask(positions[start:stop], mask_start, key_end, group, dtype) if stop - start > 1 else None
        blocks.append(RowBlock(start, stop, key_end, mask_start, mask))
    return RowSet(positions, tuple(blocks), is_prefix=host[-1] == num_rows - 1)


def _causal_mask(positions: Tensor, start: int, end: int, group: int, dtype: torch.dtype) -> Tensor:
    keys = torch.arange(start, end, device=positions.device)
    mask = torch.zeros(positions.shape[0], end - start, dtype=dtype, device=positions.device)
    return mask.masked_fill_(keys[None, :] > positions[:, None], float("-inf")).repeat_interleave(group, dim=0)
