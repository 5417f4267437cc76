"""SGLang's side of an eviction: the order of nodes that a policy of the built-in engine asks for."""

from collections.abc import Mapping
from typing import Any

from sglang.srt.mem_cache.evict_policy import EvictionStrategy

from engine.prefix.policies import POLICIES
from engine.prefix.policy import EvictionPolicy

# Of the built-in policies those that SGLang does not have; the others are its own.
POLICY_NAMES = ("saecache", "sae_g")


class PolicyStrategy(EvictionStrategy):
    """Planned nodes first, in the plan's order; nodes that nobody planned to evict behind them, longest unused first.

    Args:
        policy: of the built-in engine, ranked by a `Mirror` that the radix cache keeps.
    """

    def __init__(self, policy: EvictionPolicy) -> None:
        self.policy = policy
        self._order: Mapping[int, int] = {}

    def plan(self, order: Mapping[int, int]) -> None:
        """Takes the next nodes to leave: by node id, their places in the order."""
        self._order = order

    def get_priority(self, node: Any) -> tuple[int, float]:
        """Returns the node's place; smaller leaves first."""
        place = self._order.get(node.id)
        return (1, node.last_access_time) if place is None else (0, float(place))


def strategy_factory(name: str) -> type[PolicyStrategy]:
    """Returns a class as SGLang's table of policies holds them: its keyword arguments are the policy's configuration."""

    class Named(PolicyStrategy):
        def __init__(self, **config: Any) -> None:
            super().__init__(POLICIES.create(name, **config))

    Named.__name__ = f"{name.title().replace('_', '')}Strategy"
    return Named
