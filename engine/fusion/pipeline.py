"""One request by one method: select, then recompute layer by layer while the rest is loaded, up to the first token.

Knows no method by name. Times are measured here and nowhere else.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from engine.chunks.anchors import AnchorBank
from engine.chunks.prefetch import ContextLoader, Placed
from engine.errors import Cancelled
from engine.fusion.base import FusionMethod, SelectionContext
from engine.fusion.placing import InOnePass, InTwoSteps, Placing
from engine.fusion.plan import FusionPlan
from engine.fusion.shift import KeyShifter
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder, Projection, Rows
from engine.model.head_weights import HeadWeights
from engine.model.prompt import Prompt
from engine.recorder import Recorder
from engine.types import Span, TtftParts

# Puts what is known exactly of a prompt's first tokens into a request's cache, as part of the request.
FillPrefix = Callable[[RequestCache, Recorder, Callable[[], bool]], None]


class Prefilled(NamedTuple):
    """A filled cache's first token. logits: float32 [vocabulary], those of the first answer token."""

    plan: FusionPlan
    logits: Tensor
    ttft_s: float
    parts_s: TtftParts
    spans: tuple[Span, ...]
    loaded_bytes: int


class FusionPipeline:
    """Runs methods on one decoder.

    Args:
        critical_layers: calibrated for the decoder, best first.
        depth: layers the reader works ahead; 0 loads synchronously, with the same result bit for bit.
        head_weights: fitted for the decoder, or None.
    """

    def __init__(
        self,
        decoder: Decoder,
        anchors: AnchorBank,
        critical_layers: tuple[int, ...],
        depth: int = 2,
        head_weights: HeadWeights | None = None,
    ) -> None:
        self.decoder, self.anchors, self.critical_layers, self._depth = decoder, anchors, critical_layers, depth
        self.head_weights = head_weights

    @torch.inference_mode()
    def prefill(
        self,
        method: FusionMethod,
        prompt: Prompt,
        placed: Sequence[Placed],
        cache: RequestCache,
        cancelled: Callable[[], bool] = lambda: False,
        fill_prefix: FillPrefix | None = None,
    ) -> Prefilled:
        """Fills `cache` with the prompt's KV and returns the first token's logits. Raises Cancelled, StoreError, BadRequest.

        Args:
            placed: the stored system part and chunks, contiguous from position 0; not read by methods that reuse nothing.
            fill_prefix: fills the cache up to the first chunk, where `placed` begins with a part that has no stored chunk.
        """
        at, recorder = rotary_positions(method, prompt), Recorder(self.decoder.device)
        if fill_prefix is not None:
            fill_prefix(cache, recorder, cancelled)
        read = placed if method.reads_cache else [p for p in placed if p.chunk is None]
        context = self.selection(prompt, read, cache, cancelled, at, recorder)
        loader = context.loader
        try:
            plan = method.select(context)
            recorder.synchronize()
            selected_s = recorder.now()
            loader.start(torch.from_numpy(plan.rows), plan.exact_layers)
            cache.reading = plan.reading
            hidden = self._recompute(context, plan, at)
            with recorder.device("head"):
                logits = self.decoder.logits(hidden[-1:])[0]
                int(logits.argmax())
            recorder.synchronize()
            ttft_s = recorder.now()
        finally:
            loader.close()
        spans = recorder.spans()
        return Prefilled(plan, logits, ttft_s, _parts(spans, selected_s, ttft_s), spans, loader.loaded_bytes)

    def selection(
        self,
        prompt: Prompt,
        placed: Sequence[Placed],
        cache: RequestCache,
        cancelled: Callable[[], bool] = lambda: False,
        rope_positions: Tensor | None = None,
        recorder: Recorder | None = None,
    ) -> SelectionContext:
        """Returns what a method selects from; its clock runs from here unless given, and its loader is the caller's to close."""
        recorder = recorder or Recorder(self.decoder.device)
        before = None if rope_positions is None else rope_positions[: prompt.question_start]
        loader = ContextLoader(self.decoder, placed, cache, recorder, self._depth, before)
        ids = torch.from_numpy(prompt.ids).to(self.decoder.device)
        return SelectionContext(
            self.decoder,
            prompt,
            ids,
            tuple(placed),
            cache,
            loader,
            self.anchors,
            self.critical_layers,
            self.head_weights,
            recorder,
            cancelled,
        )

    def _recompute(self, context: SelectionContext, plan: FusionPlan, rope: Tensor | None) -> Tensor:
        """Returns the last row [1, hidden] behind all layers, the cache complete. rope: rotary positions [T], or None."""
        decoder, cache, recorder = self.decoder, context.cache, context.recorder
        with recorder.device("recompute", 0):
            positions = torch.from_numpy(plan.rows)
            rows = decoder.rows(positions, None if rope is None else rope[positions])
            last = decoder.rows(positions[-1:], None if rope is None else rope[positions[-1:]])
            shifter = KeyShifter(decoder, context.placed, positions, cache, plan.key_shift) if plan.key_shift else None
            placing = self.placing(context, plan, rows, rope)
            first = 1 if plan.resume is None else plan.resume.layer
            hidden = self._first_layer(context.ids, rows, cache, rope) if plan.resume is None else plan.resume.hidden
        for layer in range(first, decoder.spec.num_layers):
            if context.cancelled():
                raise Cancelled("Stopped between two layers; nothing was kept of this run.")
            placing.bring(layer)
            with recorder.device("recompute", layer):
                p = self.project(layer, hidden)
                if shifter is None:
                    placing.write(layer, p.keys, p.values)
                    hidden = self._behind(layer, hidden, p, rows, last, cache)
            if shifter is not None:
                with recorder.device("correct", layer):
                    shifter.apply(layer, p.keys)
                with recorder.device("recompute", layer):
                    placing.write(layer, p.keys, p.values)
                    hidden = self._behind(layer, hidden, p, rows, last, cache)
        return hidden

    def placing(self, context: SelectionContext, plan: FusionPlan, rows: Rows, rope: Tensor | None) -> Placing:
        """Returns how a request's cache is filled: in one pass where the kernels have one and nothing looks at stored keys before."""
        if plan.key_shift or not self.decoder.ops.has_own("rotate_scatter_keys"):
            return InTwoSteps(self.decoder, context.loader, rows, context.cache)
        return InOnePass(self.decoder, context.loader, rows, context.cache, context.resident_len, rope)

    def project(self, layer: int, hidden: Tensor) -> Projection:
        """Returns q, k, v of the rows; k and v alone in the last layer, where no hidden state but the last row's is read."""
        if layer < self.decoder.spec.num_layers - 1:
            return self.decoder.project(layer, hidden)
        return Projection(None, *self.decoder.project_kv(layer, hidden))

    def _behind(self, layer: int, hidden: Tensor, p: Projection, rows: Rows, last: Rows, cache: RequestCache) -> Tensor:
        """Returns the rows [R, hidden] behind a layer whose K and V are complete, the last row alone [1, hidden] behind the last one."""
        if p.query is not None:
            return self.decoder.attend(layer, hidden, p.query, rows, cache)
        tail = hidden[-1:]
        return self.decoder.attend(layer, tail, self.decoder.project_query(layer, tail), last, cache)

    def _first_layer(self, ids: Tensor, rows: Rows, cache: RequestCache, rope: Tensor | None) -> Tensor:
        """Returns the rows behind layer 0, whose K and V are written for every token: they depend on nothing else."""
        decoder, states = self.decoder, self.decoder.embed(ids)
        if rows.set.num_rows == ids.shape[0]:
            return decoder.run_layer(0, states, rows, cache)
        keys, values = decoder.project_kv(0, states)
        decoder.write(0, keys, values, decoder.rows(torch.arange(ids.shape[0]), rope), cache)
        hidden = states[rows.set.positions]
        return decoder.attend(0, hidden, decoder.project_query(0, hidden), rows, cache)


def rotary_positions(method: FusionMethod, prompt: Prompt) -> Tensor | None:
    """Returns int64 [T], the rotary positions a method gives a prompt's tokens, None where they are those of the prompt."""
    rope = method.rope_positions(prompt)
    return None if rope is None else torch.from_numpy(rope)


def _parts(spans: Sequence[Span], selected_s: float, ttft_s: float) -> TtftParts:
    """Returns the split; rows that a method recomputed while it selected count as recomputed."""

    def total(stage: str, until: float = float("inf")) -> float:
        found = (s for s in spans if s.lane == "device" and s.stage == stage and s.start_s < until)
        return sum((s.end_s - s.start_s for s in found), 0.0)

    probe, load_wait, head = total("probe"), total("load_wait"), total("head")
    early, early_wait = total("recompute", selected_s), total("load_wait", selected_s)
    return TtftParts(
        probe=probe,
        select=selected_s - probe - early - early_wait,
        load_wait=load_wait,
        recompute=ttft_s - selected_s - (load_wait - early_wait) - head + early,
        head=head,
    )
