"""The entry point: what SGLang calls in each of its processes before it builds anything."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any


def register() -> None:
    """Adds the policies and the attention backend to SGLang's choices and hooks the few places that serve them."""
    from sglang.srt.mem_cache import utils
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    from sglang.srt.server_args import add_attention_backend_choices, add_radix_eviction_policy_choices

    from engine.serving.sglang import fusion_hooks
    from engine.serving.sglang.strategy import POLICY_NAMES, strategy_factory

    add_radix_eviction_policy_choices(list(POLICY_NAMES))
    for name in POLICY_NAMES:
        utils._EVICTION_POLICY_FACTORIES[name] = strategy_factory(name)
    HookRegistry.register("sglang.srt.mem_cache.registry.create_unified_radix_cache", _policy_cache, HookType.AROUND)
    HookRegistry.register("sglang.srt.managers.schedule_batch.ScheduleBatch.prepare_for_extend", _look_up, HookType.BEFORE)
    HookRegistry.register("sglang.srt.managers.scheduler.Scheduler.get_internal_state", _with_stats, HookType.AFTER)
    add_attention_backend_choices([fusion_hooks.BACKEND])
    HookRegistry.register("sglang.srt.model_executor.model_runner.ModelRunner.__init__", fusion_hooks.add_backend, HookType.BEFORE)
    HookRegistry.register("sglang.srt.managers.scheduler.Scheduler._add_request_to_queue", fusion_hooks.read_request, HookType.BEFORE)
    HookRegistry.register("sglang.srt.model_executor.forward_batch_info.ForwardBatch.init_new", fusion_hooks.attach, HookType.AFTER)
    for model in fusion_hooks.MODELS:
        HookRegistry.register(f"sglang.srt.models.{model}.forward", fusion_hooks.forward, HookType.AROUND)


def _policy_cache(create: Callable[..., Any], context: Any, *, cache_class: type | None = None) -> Any:
    """Builds the radix cache of a policy of ours, in Python: the tree in Rust knows SGLang's own policies only."""
    from engine.serving.sglang.strategy import POLICY_NAMES

    if context.params.eviction_policy.lower() not in POLICY_NAMES or context.params.disable or cache_class is not None:
        return create(context, cache_class=cache_class)
    from engine.serving.sglang.radix_cache import PolicyRadixCache

    return create(replace(context, params=replace(context.params, tree_core_backend="python")), cache_class=PolicyRadixCache)


def _look_up(batch: Any) -> None:
    look_up: Callable[[Sequence[Any]], None] | None = getattr(batch.tree_cache, "look_up", None)
    if look_up is not None:
        look_up(batch.reqs)


def _with_stats(output: Any, scheduler: Any, *args: Any) -> Any:
    """Adds what the plugin does to the state that `GET /server_info` shows: `policy` and `fusion`, None where it is SGLang's own."""
    stats = getattr(scheduler.tree_cache, "stats", None)
    fuser = getattr(scheduler.tp_worker.model_runner.attn_backend, "fuser", None)
    output.internal_state["fusescope"] = {
        "policy": None if stats is None else stats.values(),
        "fusion": None if fuser is None else fuser.values(),
    }
    return output
