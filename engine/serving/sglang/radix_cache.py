"""SGLang's radix cache with a policy of the built-in engine: tells the mirror what happens and evicts what it says.

`--radix-eviction-policy saecache`. The tree, its locks and its pages stay SGLang's; only the order of eviction is ours. Hierarchical
caches and streaming sessions move nodes that the mirror is not told of: those leave last, longest unused first.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sglang.srt.constants import HEALTH_CHECK_RID_PREFIX
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

from engine.errors import BadRequest
from engine.prefix.roles import TypedTokens, typed_answer
from engine.prefix.tree import Lease
from engine.serving.sglang.clock import PolicyClock
from engine.serving.sglang.conversations import Conversations
from engine.serving.sglang.metadata import NOTHING_SAID, RequestMeta, read_meta
from engine.serving.sglang.mirror import Mirror
from engine.serving.sglang.pages import EvictionPlan, NodeEnds
from engine.serving.sglang.policy_stats import PolicyStats
from engine.serving.sglang.strategy import PolicyStrategy
from engine.serving.sglang.token_types import PromptTypes, stated_kinds


class _Held(NamedTuple):
    """A running request: its hold on the mirror and the types of its prompt."""

    lease: Lease
    prompt: TypedTokens


class PolicyRadixCache(UnifiedRadixCache):
    """A unified radix cache whose eviction strategy is a `PolicyStrategy`."""

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        if self.tp_world_size > 1:
            raise ValueError(
                f"The policy {params.eviction_policy!r} was asked for with {self.tp_world_size} tensor-parallel ranks, each with a clock "
                "of its own; run one server a GPU behind a router instead, or choose a policy of SGLang's."
            )
        self.strategy: PolicyStrategy = self.tree_core.eviction_strategy
        max_prompt = self.req_to_token_pool.req_to_token.shape[1]
        capacity = params.token_to_kv_pool_allocator.size // self.page_size
        self.mirror = Mirror(self.strategy.policy, capacity, self.page_size, max_prompt)
        self.stats = PolicyStats(self.mirror)
        self._forget_requests()
        self._types: PromptTypes | None = None

    def reset(self) -> None:
        super().reset()
        if hasattr(self, "mirror"):
            self.mirror.reset()
            self._forget_requests()

    def look_up(self, reqs: Sequence[Any]) -> None:
        """Tells the policy of requests that are about to be computed, each once.

        Left out are those that check the server's health, those of streaming sessions, and those that leave nothing in the cache.
        """
        for req in reqs:
            is_no_ones = req.rid.startswith(HEALTH_CHECK_RID_PREFIX) or req.session is not None or req.skip_radix_cache_insert
            if req.rid not in self._held and not is_no_ones:
                self._held[req.rid] = self._begin(req)

    def checkpoint(self, req: Any, *, up_to: int, **kwargs: Any) -> None:
        super().checkpoint(req, up_to=up_to, **kwargs)
        held = self._held.get(req.rid)
        if held is None:
            return
        num_kept = req.kv.cache_protected_len // self.page_size * self.page_size
        path = self._path(req, self._typed(req, held)[:num_kept])
        if len(path):
            self.stats.unplanned += len(self.mirror.insert(held.lease, path))
            self._ends.set(int(path[-1]), req.last_node)

    def on_release(self, req: Any, *, checkpointed: bool) -> None:
        super().on_release(req, checkpointed=checkpointed)
        held = self._held.pop(req.rid, None)
        if held is not None:
            self.mirror.end(held.lease)
            self.stats.served(held.lease)

    def evict(self, params: Any) -> Any:
        self._plan(params.num_tokens)
        return super().evict(params)

    def evict_for_alloc(self, params: Any, **kwargs: Any) -> Any:
        self._plan(params.num_tokens)
        return super().evict_for_alloc(params, **kwargs)

    def _evict_device_leaf(self, node_id: int, tracker: Any) -> Any:
        block, pages = self._ends.block(node_id), len(self.tree_core.node_by_id(node_id).key) // self.page_size
        if block is not None and self.mirror.columns.cached[block]:
            gone = [self.mirror.ancestor(block, i) for i in range(pages)]
            self.stats.unplanned += len(gone)
            self.mirror.tree.remove(gone, self._clock.now())
        self._ends.forget(node_id)
        return super()._evict_device_leaf(node_id, tracker)

    def _plan(self, num_tokens: int) -> None:
        if self.disable or num_tokens <= 0:
            return
        plan = EvictionPlan(self.tree_core, self.mirror, self._ends)
        self.strategy.plan(plan.choose(num_tokens, self._clock.now()))
        self._apply_cache_actions(plan.actions)
        self.stats.passed_over += plan.num_passed_over

    def _begin(self, req: Any) -> _Held:
        meta = self._meta(req)
        ids = np.asarray(req.origin_input_ids, np.int64)
        prompt = TypedTokens(ids, self._kinds(req, meta))
        path = self._path(req, prompt)
        time_s = self._clock.begin(meta.time_s)
        request = self._conversations.request(meta, self.mirror.columns, path, prompt.kinds, len(ids), self.mirror.num_requests, time_s)
        return _Held(self.mirror.begin(request), prompt)

    def _meta(self, req: Any) -> RequestMeta:
        try:
            return read_meta(req.sampling_params.custom_params)
        except BadRequest as error:
            self.stats.complain(str(error))
            return NOTHING_SAID

    def _kinds(self, req: Any, meta: RequestMeta) -> np.ndarray:
        num_tokens = len(req.origin_input_ids)
        if meta.kinds:
            try:
                return stated_kinds(meta.kinds, num_tokens)
            except BadRequest as error:
                self.stats.complain(str(error))
        if self._types is None:
            self._types = PromptTypes(req.tokenizer)
        return self._types.kinds(req.origin_input_ids)

    def _typed(self, req: Any, held: _Held) -> TypedTokens:
        """Returns the request's prompt and what it has answered so far, with their types."""
        answer = list(req.output_ids)
        pieces = [req.tokenizer.decode([token_id]) for token_id in answer] if req.tokenizer is not None else [""] * len(answer)
        return held.prompt + typed_answer(answer, pieces)

    def _path(self, req: Any, tokens: TypedTokens) -> np.ndarray:
        """Returns the blocks of a request's tokens; requests of another salt or adapter have others."""
        keys: list[object] = list(tokens.block_keys(self.page_size))
        if keys:
            keys[0] = (req.extra_key, req.cache_salt, keys[0])
        return self.mirror.path(keys, tokens.block_kinds(self.page_size))

    def _forget_requests(self) -> None:
        self._held: dict[str, _Held] = {}
        self._ends = NodeEnds()
        self._clock, self._conversations = PolicyClock(), Conversations()
