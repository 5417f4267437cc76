"""Which page of the pool holds which block, and which pages are free. Knows nothing of tensors or policies."""

import numpy as np

from engine.prefix.blocks import num_leading

NO_PAGE = -1


class PageTable:
    """Maps blocks, rows of the cache's columns, to pages 0..num_pages - 1.

    A block gets its page only once its contents are written (`offer`, write, `bind`), so that work given up in between leaves
    neither a page without an owner nor a block without contents.
    """

    def __init__(self, num_pages: int, num_blocks: int) -> None:
        self.num_pages = num_pages
        self._page = np.full(num_blocks, NO_PAGE, np.int32)
        self._free = list(range(num_pages))[::-1]

    @property
    def num_free(self) -> int:
        """Returns the number of pages that hold nothing."""
        return len(self._free)

    def pages(self, blocks: np.ndarray) -> np.ndarray:
        """Returns the pages int32 [n] of blocks, NO_PAGE for those without contents."""
        return self._page[blocks]

    def num_filled(self, path: np.ndarray) -> int:
        """Returns how many blocks of a path have contents before the first that has none."""
        return num_leading(self._page[path] != NO_PAGE)

    def offer(self, num: int) -> np.ndarray:
        """Returns `num` free pages int32 [num] to write to; they stay free until they are bound."""
        assert num <= len(self._free), f"{num} pages are wanted and {len(self._free)} are free"
        return np.array(self._free[len(self._free) - num :][::-1], np.int32)

    def bind(self, blocks: np.ndarray, pages: np.ndarray) -> None:
        """Gives blocks without a page those last offered, whose contents are written now."""
        num = len(pages)
        assert len(blocks) == num and (self._page[blocks] == NO_PAGE).all(), "a block has one page"
        assert self._free[len(self._free) - num :][::-1] == pages.tolist(), "other pages were offered"
        del self._free[len(self._free) - num :]
        self._page[blocks] = pages

    def release(self, blocks: np.ndarray) -> None:
        """Frees the pages of blocks that left the cache; those whose contents were never written have none."""
        pages = self._page[blocks]
        self._page[blocks] = NO_PAGE
        self._free += pages[pages != NO_PAGE].tolist()

    def check_integrity(self, cached: np.ndarray) -> None:
        """Asserts that every page is free or a cached block's, and no page both or twice; cached: bool [num_blocks]."""
        held = self._page[self._page != NO_PAGE].tolist()
        assert sorted(held + self._free) == list(range(self.num_pages)), "pages are lost or held twice"
        assert cached[self._page != NO_PAGE].all(), "a block that left the cache still has a page"
