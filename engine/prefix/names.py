"""Names the blocks of requests as they arrive: a row for every prefix seen, given back when the cache has forgotten it."""

from collections.abc import Hashable, Sequence

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import NO_PARENT, BlockColumns, TokenType


class BlockNames:
    """Finds or makes the rows of blocks by what they hold and what stands before them.

    Rows of blocks that are neither cached, remembered, held nor pinned are given back when the columns are full, so that a server can
    run for good in columns of fixed size.
    """

    def __init__(self, columns: BlockColumns) -> None:
        self._columns = columns
        self._row: dict[tuple[int, Hashable], int] = {}
        self._name: list[tuple[int, Hashable] | None] = [None] * columns.num_blocks
        self._free = list(range(columns.num_blocks))[::-1]
        self._num_children = np.zeros(columns.num_blocks, np.int32)

    def __len__(self) -> int:
        return len(self._row)

    def path(self, keys: Sequence[Hashable], kinds: Sequence[int] | None = None) -> np.ndarray:
        """Returns the rows int32 [n] of blocks that follow one another from the start of a prompt.

        Args:
            keys: what each block holds, e.g. its token ids as a tuple.
            kinds: token type of each, USER without it; those of the first time count.

        Raises BadRequest where more rows are needed at once than there are.
        """
        rows: list[int] = []
        parent = NO_PARENT
        for i, key in enumerate(keys):
            row = self._row.get((parent, key))
            if row is None:
                row = self._new_row(parent, key, TokenType.USER if kinds is None else kinds[i], rows)
            rows.append(row)
            parent = row
        return np.array(rows, np.int32)

    def _new_row(self, parent: int, key: Hashable, kind: int, path: list[int]) -> int:
        if not self._free:
            self._collect(path)
        if not self._free:
            raise BadRequest(
                f"The prompt has more blocks than the cache's {self._columns.num_blocks:,} rows can name beside those in use; shorten it."
            )
        row, c = self._free.pop(), self._columns
        self._row[parent, key] = row
        self._name[row] = (parent, key)
        if parent >= 0:
            self._num_children[parent] += 1
        c.parent[row], c.depth[row], c.kind[row] = parent, (c.depth[parent] + 1 if parent >= 0 else 0), kind
        c.hits[row] = c.num_sessions[row] = 0
        c.owner[row] = -1
        return row

    def _collect(self, path: list[int]) -> None:
        """Gives back the rows that nothing needs, children before parents; the path being named is kept."""
        c = self._columns
        needed = c.in_use()
        needed[path] = True
        for row in np.argsort(-c.depth, kind="stable").tolist():
            name = self._name[row]
            if name is None or needed[row] or self._num_children[row]:
                continue
            del self._row[name]
            self._name[row] = None
            self._free.append(row)
            if name[0] >= 0:
                self._num_children[name[0]] -= 1
