"""Where the rows and keys of one or several requests stand, for kernels that work through all of them at once."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class KeysValues(NamedTuple):
    """Keys and values of the same tokens, [n, Hkv, D] each."""

    keys: Tensor
    values: Tensor


class Pages(NamedTuple):
    """Position t of request b is slot table[b, t // size] size + t % size of the cache. table: int32 [B, pages of a request]."""

    table: Tensor
    size: int


@dataclass(frozen=True, eq=False, slots=True)
class RowBatch:
    """The computed rows of B requests, one behind the other.

    Args:
        positions: int64 or int32 [R]: place of every row in its own request, sorted within each.
        num_rows: rows of each request.
        num_keys: keys each request may read: its last position + 1.
        num_slots: rows that K and V must have at least; 0 where pages say where keys are.
        row_starts: int32 [B + 1], first row of each request and R; None for a single request.
        key_starts: int32 [B], row of each request's first key in K and V; None for a single request and where there are pages.
        pages: where positions lie in a paged cache; None where keys lie in order.
    """

    positions: Tensor
    num_rows: tuple[int, ...]
    num_keys: tuple[int, ...]
    num_slots: int
    row_starts: Tensor | None = None
    key_starts: Tensor | None = None
    pages: Pages | None = None

    def row_spans(self) -> list[tuple[int, int]]:
        """Returns [start, stop) of the rows of each request."""
        return list(itertools.pairwise(itertools.accumulate(self.num_rows, initial=0)))

    def slots(self, request: int) -> Tensor:
        """Returns int64 [num_keys]: the row of K and V that holds each position of a request."""
        at = torch.arange(self.num_keys[request], device=self.positions.device)
        if self.pages is not None:
            return self.pages.table[request].long()[at // self.pages.size] * self.pages.size + at % self.pages.size
        return at if self.key_starts is None else at + self.key_starts[request]


def row_batch(
    positions: Sequence[Tensor], device: torch.device | str, key_starts: Sequence[int] | None = None, pages: Pages | None = None
) -> RowBatch:
    """Returns the batch of requests with rows at `positions`, int64 [R_b] each and on the CPU.

    Args:
        key_starts: row of each request's first key where K and V of all lie one behind the other; several requests need
            either these or pages.

    Raises ValueError where positions are not sorted, unique and at least 0, a request has none, or its keys have no place.
    """
    spans = [_check_positions(p, b) for b, p in enumerate(positions)]
    if not spans:
        raise ValueError("A batch has no request; give the positions of at least one.")
    if pages is None and key_starts is None and len(spans) > 1:
        raise ValueError(f"{len(spans)} requests share one K and V; give `key_starts` or `pages` to say where the keys of each are.")
    if key_starts is not None and (pages is not None or len(key_starts) != len(spans) or min(key_starts) < 0):
        raise ValueError(f"`key_starts` is {list(key_starts)}; give one row of at least 0 for each of {len(spans)} requests, and no pages.")
    if pages is not None:
        check_pages(pages, [last + 1 for _, last in spans])
    counts = tuple(count for count, _ in spans)
    is_single = len(spans) == 1 and not (key_starts and key_starts[0])
    ends = [last + 1 + (0 if key_starts is None else key_starts[b]) for b, (_, last) in enumerate(spans)]
    starts = None if is_single else _int32([0, *itertools.accumulate(counts)], device)
    return RowBatch(
        torch.cat(list(positions)).to(device),
        counts,
        tuple(last + 1 for _, last in spans),
        0 if pages is not None else max(ends),
        starts,
        None if is_single or key_starts is None else _int32(key_starts, device),
        pages,
    )


def merge_sources(positions: Tensor, num_tokens: int) -> Tensor:
    """Returns int32 [num_tokens] for `rotate_scatter_keys`: the index of the fresh row at each position, -1 where there is none.

    positions: int64 [R], those of the fresh rows, on the device of the result.
    """
    source = torch.full((num_tokens,), -1, dtype=torch.int32, device=positions.device)
    source[positions] = torch.arange(positions.shape[0], dtype=torch.int32, device=positions.device)
    return source


def _check_positions(positions: Tensor, request: int) -> tuple[int, int]:
    """Returns the number of a request's positions and the last of them."""
    host = positions.tolist()
    if not host or host[0] < 0 or any(a >= b for a, b in itertools.pairwise(host)):
        raise ValueError(f"Positions of request {request} must be sorted, unique, at least 0 and at least one; got {len(host)} rows.")
    return len(host), host[-1]


def check_pages(pages: Pages, num_keys: Sequence[int]) -> None:
    """Raises ValueError where a page table does not hold `num_keys` positions of each request."""
    table, size = pages
    if table.dtype != torch.int32 or table.dim() != 2 or table.shape[0] != len(num_keys) or table.stride(1) != 1:
        raise ValueError(
            f"The page table is {table.dtype} {list(table.shape)}; it must be int32 [{len(num_keys)}, pages], rows contiguous."
        )
    if size < 1 or table.shape[1] * size < max(num_keys):
        raise ValueError(f"{table.shape[1]} pages of {size} positions are too few for {max(num_keys)} keys; give the request more pages.")


def _int32(values: Sequence[int], device: torch.device | str) -> Tensor:
    return torch.tensor(list(values), dtype=torch.int32, device=device)
