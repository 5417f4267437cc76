"""UniCache (SIGMETRICS 2026): SAECache's queues without token types and without dividing by idle time.

Evicts the smallest alpha_q s_q, s = 1 - F(idle; mu_q, sigma_q) for sessions with fixed offline fits, 1 - o / o_max for templated
prompts; alpha is learned with T = 0.2.
"""

from dataclasses import dataclass
from typing import ClassVar

from engine.prefix.blocks import BlockColumns
from engine.prefix.policies.saecache import SAECache, SAERanker
from engine.prefix.policy import POLICIES, Future


@POLICIES.register("unicache")
@dataclass(frozen=True)
class UniCache(SAECache):
    """SAECache's predecessor; the fields of what it has not are fixed."""

    temperature: float = 0.2
    learn_types: bool = False
    learn_timing: bool = False
    learn_position: bool = False
    chat_mu: float = 4.77
    chat_sigma: float = 1.279
    agent_mu: float = 1.81
    agent_sigma: float = 1.092
    name: ClassVar[str] = "unicache"

    def ranker(self, columns: BlockColumns, capacity: int, future: Future | None = None) -> "UniCacheRanker":
        return UniCacheRanker(columns, self)


class UniCacheRanker(SAERanker):
    """SAECache's lists under UniCache's score."""

    def score(self, number: int, block: int, now_s: float) -> float:
        """Returns ln(alpha s)."""
        gaps, idle_s = self._gaps[number], max(now_s - self._last_at[block], self._least_idle_s)
        return self._base[number] + (0.0 if gaps is None else gaps.log_survival(idle_s))
