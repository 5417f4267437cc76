"""Which pages of which radix nodes leave next: block by block what the policy says, as whole nodes where SGLang needs them.

Nodes hold many pages and SGLang evicts whole ones; a node of which only the last pages are to leave is split first.
"""

from collections.abc import Mapping
from typing import Any

from engine.serving.sglang.mirror import Mirror


class NodeEnds:
    """The radix node that ends at a block of the mirror, and back."""

    def __init__(self) -> None:
        self._node_of: dict[int, int] = {}
        self._block_of: dict[int, int] = {}

    def set(self, block: int, node_id: int) -> None:
        """Notes that a node's last page is a block."""
        self.forget(self._node_of.get(block))
        self._node_of[block], self._block_of[node_id] = node_id, block

    def node(self, block: int) -> int | None:
        """Returns the id of the node that ends at a block."""
        return self._node_of.get(block)

    def block(self, node_id: int) -> int | None:
        """Returns the block at which a node ends."""
        return self._block_of.get(node_id)

    def forget(self, node_id: int | None) -> None:
        """Drops a node that is gone."""
        if node_id is not None and (block := self._block_of.pop(node_id, None)) is not None:
            self._node_of.pop(block, None)


class EvictionPlan:
    """Chooses pages for one eviction and turns them into whole nodes.

    Args:
        core: SGLang's tree in Python.

    `actions` are what SGLang has to do about nodes that were split. `num_passed_over` counts blocks that it would not let go of.
    """

    def __init__(self, core: Any, mirror: Mirror, ends: NodeEnds) -> None:
        self._core, self._mirror, self._ends = core, mirror, ends
        self._page_size = mirror.block_tokens
        # By node id: pages taken from its end so far; and where the next page of a node begun stands.
        self._taken: dict[int, int] = {}
        self._next: dict[int, int] = {}
        self.num_passed_over = 0
        self.actions: list[Any] = []

    def choose(self, num_tokens: int, now_s: float) -> Mapping[int, int]:
        """Returns the place in the order of each node that is to leave, for room of `num_tokens`; takes them out of the mirror."""
        self._mirror.tree.choose(-(-num_tokens // self._page_size), now_s, self._take)
        for node_id, count in self._taken.items():
            node = self._core.node_by_id(node_id)
            keep = len(node.key) // self._page_size - count
            if keep:
                last = self._ends.block(node_id)
                assert last is not None
                head, action = self._core._split_node(node.key, node, keep * self._page_size)
                self.actions += [] if action is None else [action]
                self._ends.set(self._mirror.ancestor(last, count), head.id)
        return {node_id: place for place, node_id in enumerate(self._taken)}

    def _take(self, block: int) -> bool:
        """Whether SGLang lets go of a block, the last of its node or of what is left of it; it counts as taken then."""
        node_id = self._next.get(block, self._ends.node(block))
        node = None if node_id is None else self._core._node_arena.get(node_id)
        if node is None or not self._may_leave(node):
            self.num_passed_over += 1
            return False
        taken = self._taken[node.id] = self._taken.get(node.id, 0) + 1
        above = self._mirror.ancestor(block, 1)
        if taken < len(node.key) // self._page_size:
            self._next[above] = node.id
        elif above >= 0:
            self._ends.set(above, node.parent.id)
        return True

    def _may_leave(self, node: Any) -> bool:
        """Whether a node is nobody's, and nothing stands behind it that stays."""
        pages = self._page_size
        gone = all(self._taken.get(child.id) == len(child.key) // pages for child in node.children.values())
        return gone and all(data.lock_ref == 0 for data in node.component_data)
