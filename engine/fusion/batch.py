"""Several requests in one pass: each selects by its own method, then the rows of all run through the layers together.

Weights are read once for all rows. What a request computes, and every place in its cache, is the same as alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from engine.chunks.prefetch import Placed
from engine.errors import Cancelled
from engine.fusion.base import FusionMethod, SelectionContext
from engine.fusion.pipeline import FillPrefix, FusionPipeline, rotary_positions
from engine.fusion.placing import Placing
from engine.fusion.plan import FusionPlan
from engine.fusion.shift import KeyShifter
from engine.model.batch_cache import BatchCache
from engine.model.decoder import Rows
from engine.model.prompt import Prompt
from engine.recorder import Recorder
from engine.types import Span
from kernels.batch import RowBatch, row_batch


@dataclass(frozen=True, eq=False, slots=True)
class BatchRequest:
    """One request of a batch; arguments as of `FusionPipeline.prefill`."""

    method: FusionMethod
    prompt: Prompt
    placed: Sequence[Placed]
    fill_prefix: FillPrefix | None = None


class FirstToken(NamedTuple):
    """What came of one request. logits: float32 [vocabulary], those of its first answer token."""

    plan: FusionPlan
    logits: Tensor
    loaded_bytes: int


class BatchPrefilled(NamedTuple):
    """A batch's first tokens, in the order of its requests; time and spans are those of all together."""

    requests: tuple[FirstToken, ...]
    ttft_s: float
    spans: tuple[Span, ...]


@dataclass(frozen=True, eq=False, slots=True)
class _Member:
    """A request that has selected. rope: int64 [T], rotary positions, or None where they are those of the prompt."""

    index: int
    context: SelectionContext
    plan: FusionPlan
    rope: Tensor | None
    rows: Rows
    last: Rows
    placing: Placing
    shifter: KeyShifter | None

    @property
    def first(self) -> int:
        """Returns the first layer that it runs through with the others."""
        return 1 if self.plan.resume is None else self.plan.resume.layer


@dataclass(frozen=True, eq=False, slots=True)
class _Group:
    """Rows of several members, one behind the other. ragged: where they and their keys are, None where each attends by itself."""

    members: tuple[_Member, ...]
    rows: tuple[Rows, ...]
    cos: Tensor
    sin: Tensor
    ragged: RowBatch | None

    @property
    def sizes(self) -> list[int]:
        return [rows.set.num_rows for rows in self.rows]


class BatchPipeline:
    """Runs batches on the decoder of a pipeline. Keeps nothing between two of them."""

    def __init__(self, pipeline: FusionPipeline) -> None:
        self._pipeline, self._decoder = pipeline, pipeline.decoder

    def cache(self, requests: Sequence[BatchRequest], num_new_tokens: int) -> BatchCache:
        """Returns caches with room for each prompt and an answer of `num_new_tokens`."""
        decoder = self._decoder
        return BatchCache(decoder.spec, [r.prompt.num_tokens + num_new_tokens for r in requests], decoder.dtype, decoder.device)

    @torch.inference_mode()
    def prefill(self, requests: Sequence[BatchRequest], cache: BatchCache, cancelled: Callable[[], bool] = lambda: False) -> BatchPrefilled:
        """Fills each request's share of `cache` and returns the first tokens' logits.

        Raises Cancelled, StoreError, BadRequest, of whichever request; nothing is then kept of any.
        """
        recorder, contexts = Recorder(self._decoder.device), list[SelectionContext]()
        try:
            members = []
            for i, request in enumerate(requests):
                contexts.append(self._open(request, cache, i, recorder, cancelled))
                members.append(self._select(request, contexts[-1], i))
            with recorder.device("recompute", 0):
                tails = self._first_layer([m for m in members if m.plan.resume is None], cache)
            hidden = self._layers(members, tails, cache, recorder, cancelled)
            with recorder.device("head"):
                logits = self._decoder.logits(hidden)
                logits.argmax(dim=-1).tolist()
            recorder.synchronize()
            ttft_s = recorder.now()
        finally:
            for context in contexts:
                context.loader.close()
        done = tuple(FirstToken(m.plan, logits[m.index], m.context.loader.loaded_bytes) for m in members)
        return BatchPrefilled(done, ttft_s, recorder.spans())

    def _open(
        self, request: BatchRequest, cache: BatchCache, index: int, recorder: Recorder, cancelled: Callable[[], bool]
    ) -> SelectionContext:
        share = cache.shares[index]
        if request.fill_prefix is not None:
            request.fill_prefix(share, recorder, cancelled)
        read = request.placed if request.method.reads_cache else [p for p in request.placed if p.chunk is None]
        return self._pipeline.selection(request.prompt, read, share, cancelled, rotary_positions(request.method, request.prompt), recorder)

    def _select(self, request: BatchRequest, context: SelectionContext, index: int) -> _Member:
        """Returns the request with its rows chosen and its reader at work, so that it reads while the next one selects."""
        decoder, plan, rope = self._decoder, request.method.select(context), rotary_positions(request.method, request.prompt)
        positions = torch.from_numpy(plan.rows)
        context.loader.start(positions, plan.exact_layers)
        context.cache.reading = plan.reading
        rows = decoder.rows(positions, None if rope is None else rope[positions])
        last = decoder.rows(positions[-1:], None if rope is None else rope[positions[-1:]])
        placing = self._pipeline.placing(context, plan, rows, rope)
        shifter = KeyShifter(decoder, context.placed, positions, context.cache, plan.key_shift) if plan.key_shift else None
        return _Member(index, context, plan, rope, rows, last, placing, shifter)

    def _first_layer(self, members: Sequence[_Member], cache: BatchCache) -> Tensor | None:
        """Returns the rows of members behind layer 0, whose K and V are written for all of their tokens; None without members."""
        if not members:
            return None
        decoder, counts = self._decoder, [m.context.ids.shape[0] for m in members]
        states = decoder.embed(torch.cat([m.context.ids for m in members]))
        keys, values = decoder.project_kv(0, states)
        for m, n, k, v in zip(members, counts, keys.split(counts), values.split(counts), strict=True):
            decoder.write(0, k, v, decoder.rows(torch.arange(n), m.rope), m.context.cache)
        hidden = torch.cat([part[m.rows.set.positions] for m, part in zip(members, states.split(counts), strict=True)])
        group = self._group(members, cache, [m.rows for m in members])
        return self._attend(0, hidden, decoder.project_query(0, hidden), group, cache)

    def _layers(
        self, members: Sequence[_Member], hidden: Tensor | None, cache: BatchCache, recorder: Recorder, cancelled: Callable[[], bool]
    ) -> Tensor:
        """Returns the last row of every member [B, hidden] behind all layers, the caches complete."""
        final = self._decoder.spec.num_layers - 1
        group: _Group | None = None
        for layer in range(1, final + 1):
            if cancelled():
                raise Cancelled("Stopped between two layers; nothing was kept of this batch.")
            # Members that have run through more layers join later, behind those that are there.
            joining = sorted((m for m in members if m.first == layer), key=lambda m: m.plan.resume is not None)
            if joining:
                late = [m.plan.resume.hidden for m in joining if m.plan.resume is not None]
                hidden = torch.cat([*([] if hidden is None else [hidden]), *late])
                there = [*(group.members if group else ()), *joining]
                group = self._group(there, cache, [m.rows for m in there])
            if group is None or hidden is None:
                continue
            for m in group.members:
                m.placing.bring(layer)
            with recorder.device("recompute", layer):
                hidden = self._layer(layer, hidden, group, cache)
        tails = {} if group is None or hidden is None else dict(zip((m.index for m in group.members), hidden.split(1), strict=True))
        whole = {m.index: m.plan.resume.hidden[-1:] for m in members if m.plan.resume is not None and m.first > final}
        return torch.cat([(tails | whole)[m.index] for m in members])

    def _layer(self, layer: int, hidden: Tensor, group: _Group, cache: BatchCache) -> Tensor:
        """Returns a group's rows behind a layer, of every member its last row alone behind the last one."""
        decoder, p = self._decoder, self._pipeline.project(layer, hidden)
        for m, k, v in zip(group.members, p.keys.split(group.sizes), p.values.split(group.sizes), strict=True):
            if m.shifter is not None:
                m.shifter.apply(layer, k)
            m.placing.write(layer, k, v)
        if p.query is not None:
            return self._attend(layer, hidden, p.query, group, cache)
        tail = torch.cat([part[-1:] for part in hidden.split(group.sizes)])
        last = self._group(group.members, cache, [m.last for m in group.members])
        return self._attend(layer, tail, decoder.project_query(layer, tail), last, cache)

    def _attend(self, layer: int, hidden: Tensor, query: Tensor, group: _Group, cache: BatchCache) -> Tensor:
        """Returns a group's rows behind a layer whose K and V are complete: one kernel over all caches, or one after the other."""
        decoder = self._decoder
        rotated = decoder.rotated(query, group.cos, group.sin)
        if group.ragged is not None:
            attn, _ = decoder.ops.sparse_prefill_attention(rotated, cache.keys[layer], cache.values[layer], group.ragged, None, 0)
        else:
            parts = zip(group.members, group.rows, rotated.split(group.sizes), strict=True)
            attn = torch.cat([decoder.attention(layer, q, rows, m.context.cache) for m, rows, q in parts])
        return decoder.behind(layer, hidden, attn)

    def _group(self, members: Sequence[_Member], cache: BatchCache, rows: Sequence[Rows]) -> _Group:
        """Returns the given rows of members as one; they attend together where the kernels can and nobody reads its cache otherwise."""
        can = self._decoder.ops.has_own("sparse_prefill_attention") and not any(m.plan.reading.is_weighted for m in members)
        starts = [cache.starts[m.index] for m in members]
        ragged = row_batch([r.set.positions.cpu() for r in rows], self._decoder.device, starts) if can else None
        return _Group(tuple(members), tuple(rows), torch.cat([r.cos for r in rows]), torch.cat([r.sin for r in rows]), ragged)
