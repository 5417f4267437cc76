"""One request to be fused: its chunks found or computed, its rows chosen by the built-in engine's method. Knows nothing of SGLang."""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor

from engine.chunks.prefetch import Placed
from engine.errors import BadRequest
from engine.fusion import METHODS
from engine.fusion.base import FusionMethod, SelectionContext
from engine.fusion.compose import create_method, parse_name
from engine.fusion.plan import FusionPlan
from engine.model.prompt import Prompt
from engine.runtime import Runtime
from engine.serving.sglang.metadata import FusionMeta
from kernels.batch import KeysValues

# The server's KV of a layer at slots.
PoolLayer = Callable[[int, Tensor], KeysValues]


class FusionJob(NamedTuple):
    """A request with its plan and the loader of its stored KV, which whoever runs it closes.

    Args:
        slots: int64 [T], where the server keeps the KV of each of the prompt's positions.
        num_cached: positions at the start whose KV the server has already and keeps.
        rows: int64 [R], positions from `num_cached` on that are computed.
        sources: of each chunk, where its KV came from: "disk", "memory", or "computed" for this request.
        times_s: seconds spent on fetching or computing chunks, and on selection.
    """

    prompt: Prompt
    context: SelectionContext
    plan: FusionPlan
    slots: Tensor
    num_cached: int
    rows: Tensor
    sources: tuple[str, ...]
    times_s: tuple[float, float]

    @property
    def num_stored(self) -> int:
        """Returns how many context positions come from the store; 0 where everything is computed."""
        everything = len(self.plan.rows) == self.prompt.num_tokens
        return 0 if everything else max(0, self.prompt.question_start - self.num_cached)


def make_prompt(meta: FusionMeta, ids: Sequence[int]) -> Prompt:
    """Returns the prompt that a request describes. Raises BadRequest where its spans do not fit its ids."""
    spans, (start, stop) = meta.chunks, meta.question
    if not spans:
        raise BadRequest("The request to fuse names no chunk; give the token positions of at least one.")
    edges = [edge for span in spans for edge in span]
    joined = all(a[1] == b[0] for a, b in itertools.pairwise(spans))
    if any(a >= b for a, b in spans) or not joined or edges[0] < 0:
        raise BadRequest(f"The chunks {list(spans)} must follow one another without gaps and hold at least one token each.")
    if not edges[-1] <= start < stop <= len(ids):
        raise BadRequest(f"The question [{start}, {stop}) must stand behind the chunks, which end at {edges[-1]}, in {len(ids)} tokens.")
    return Prompt(np.asarray(ids, np.int64), (), spans[0][0], spans, edges[-1], (start, stop))


def make_method(meta: FusionMeta) -> FusionMethod:
    """Returns the method of a request. Raises UnknownName, BadRequest where a parameter is of another type or range than it may be."""
    plain = METHODS.get(parse_name(meta.method)[0])
    try:
        # Types first: a method's own rules compare its values.
        msgspec.convert(meta.params, plain)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The parameters {meta.params} of the method {meta.method!r} are not valid ({error}); correct them.") from None
    method = create_method(meta.method, **meta.params)
    for name, value in meta.params.items():
        if name.endswith("ratio") and not 0.0 <= float(value) <= 1.0:
            raise BadRequest(f"The {name} of the method {meta.method!r} is {value}; it must be a number from 0 to 1.")
        if name == "k" and int(value) < 0:
            raise BadRequest(f"The {name} of the method {meta.method!r} is {value}; it must not be negative.")
    return method


def make_job(
    runtime: Runtime, meta: FusionMeta, ids: Sequence[int], slots: Tensor, num_cached: int, role: str, pool: PoolLayer
) -> FusionJob:
    """Returns the job of a request. Raises BadRequest, UnknownName, StoreError with the reason why it cannot be fused.

    Before the chunks stands the system part that the project's prompts begin with, or what the server has cached of a conversation.

    Args:
        role: names the request's scratch cache, kept for the next one.
        pool: the server's keys, rotated, and values of a layer at slots, [n, Hkv, D] each.
    """
    prompt = make_prompt(meta, ids)
    method = make_method(meta)
    if num_cached >= prompt.question_start:
        raise BadRequest("The server has the whole context cached already; nothing is left to fuse.")
    begun = time.perf_counter()
    placed, sources = place_chunks(runtime, prompt, num_cached, method.chunk_context or meta.context)
    placed_s = time.perf_counter()
    cache = runtime.pool.get(role, prompt.num_tokens)
    if placed[0].chunk is None:
        for layer in range(runtime.model.spec.num_layers):
            own = pool(layer, slots[: prompt.system_len])
            cache.keys[layer, : prompt.system_len], cache.values[layer, : prompt.system_len] = own.keys, own.values
    context = runtime.pipeline.selection(prompt, placed if method.reads_cache else (), cache)
    try:
        plan = _select(method, context)
        rows = torch.from_numpy(plan.rows[plan.rows >= num_cached])
        context.loader.start(torch.from_numpy(plan.rows), plan.exact_layers)
    except BaseException:
        context.loader.close()
        raise
    times = (placed_s - begun, time.perf_counter() - placed_s)
    return FusionJob(prompt, context, plan, slots, num_cached, rows, sources, times)


def place_chunks(runtime: Runtime, prompt: Prompt, num_cached: int, chunk_context: str) -> tuple[tuple[Placed, ...], tuple[str, ...]]:
    """Returns the part before the chunks and the chunks at their places, and where each chunk came from. Raises BadRequest."""
    is_own = np.array_equal(prompt.ids[: prompt.system_len], runtime.prompts.system.ids)
    if not is_own and num_cached < prompt.system_len:
        raise BadRequest(
            f"What stands before the chunks is not the project's system part, and the server has {num_cached} of its {prompt.system_len} "
            "tokens cached; send the conversation so far once without a salt, or use the project's prompt."
        )
    placed = [Placed(runtime.source.system() if is_own else None, 0, prompt.system_len, is_exact=True)]
    sources = []
    for i, (start, stop) in enumerate(prompt.chunk_spans):
        behind = _behind(chunk_context, i)
        ids = torch.from_numpy(prompt.ids[start:stop])
        stored = runtime.source.get(ids, behind)
        sources.append(stored.source if stored else "computed")
        stored = stored or runtime.source.compute(ids, behind)
        stored.open()
        placed.append(Placed(stored, start, stop, is_exact=is_own and i == 0 and behind == "system"))
    return tuple(placed), tuple(sources)


def outcome(job: FusionJob) -> dict[str, Any]:
    """Returns what became of a request, as its answer's metadata holds it."""
    chunks = (placed.chunk for placed in job.context.placed[1:])
    docs = job.plan.rows[(job.plan.rows >= job.prompt.system_len) & (job.plan.rows < job.prompt.question_start)]
    return {
        "fused": True,
        "num_rows": len(job.rows),
        "rows": job.plan.rows.tolist(),
        "critical_layers": list(job.plan.critical_layers),
        "recomputed_tokens": len(docs),
        "cached_prefix": job.num_cached,
        "chunks": [[chunk.hash, source, chunk.size_bytes, chunk.time_s] for chunk, source in zip(chunks, job.sources, strict=True)],
        "loaded_bytes": job.context.loader.loaded_bytes,
        "chunks_s": job.times_s[0],
        "select_s": job.times_s[1],
    }


def _select(method: FusionMethod, context: SelectionContext) -> FusionPlan:
    if method.corrects_keys or method.reweighs or method.rope_positions(context.prompt) is not None:
        raise BadRequest(f"The method {method.name!r} reads the context in a way that SGLang's attention does not; choose another.")
    return method.select(context)


def _behind(context: str, index: int) -> str:
    """Returns the prefix that the chunk at a place of the request is computed behind, as the built-in engine does."""
    if context in ("primed", "primed-mean") and index == 0:
        return "system"
    return "primed" if context == "primed-one" else context
