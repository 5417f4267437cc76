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
from engine.model.cache import RequestCache
from engine.model.decoder import Decoder, Rows
from engine.model.prompt import Prompt
from engine.recorder import Recorder
from engine.types import FusionPlan, Span, TtftParts


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
    """

    def __init__(self, decoder: Decoder, anchors: AnchorBank, critical_layers: tuple[int, ...], depth: int = 2) -> None:
        self.decoder, self.anchors, self.critical_layers, self._depth = decoder, anchors, critical_layers, depth

    @torch.inference_mode()
    def prefill(
        self,
        method: FusionMethod,
        prompt: Prompt,
        placed: Sequence[Placed],
        cache: RequestCache,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Prefilled:
        """Fills `cache` with the prompt's KV and returns the first token's logits. Raises Cancelled, StoreError.

        Args:
            placed: the stored system part and chunks, contiguous from position 0; not read by methods that reuse nothing.
        """
        context = self.selection(prompt, placed if method.reads_cache else (), cache, cancelled)
        recorder, loader = context.recorder, context.loader
        try:
            plan = method.select(context)
            recorder.synchronize()
            selected_s = recorder.now()
            rows = torch.from_numpy(plan.rows)
            loader.start(rows)
            hidden = self._recompute(context.ids, rows, cache, loader, recorder, cancelled)
            with recorder.device("head"):
                logits = self.decoder.logits(hidden)[0]
                int(logits.argmax())
            recorder.synchronize()
            ttft_s = recorder.now()
        finally:
            loader.close()
        spans = recorder.spans()
        return Prefilled(plan, logits, ttft_s, _parts(spans, selected_s, ttft_s), spans, loader.loaded_bytes)

    def selection(
        self, prompt: Prompt, placed: Sequence[Placed], cache: RequestCache, cancelled: Callable[[], bool] = lambda: False
    ) -> SelectionContext:
        """Returns what a method selects from; its clock runs from here, and its loader is the caller's to close."""
        recorder = Recorder(self.decoder.device)
        loader = ContextLoader(self.decoder, placed, cache, recorder, self._depth)
        ids = torch.from_numpy(prompt.ids).to(self.decoder.device)
        return SelectionContext(self.decoder, prompt, ids, tuple(placed), loader, self.anchors, self.critical_layers, recorder, cancelled)

    def _recompute(
        self,
        ids: Tensor,
        positions: Tensor,
        cache: RequestCache,
        loader: ContextLoader,
        recorder: Recorder,
        cancelled: Callable[[], bool],
    ) -> Tensor:
        """Returns the last row [1, hidden] behind all layers, the cache complete."""
        decoder, num_layers = self.decoder, self.decoder.spec.num_layers
        with recorder.device("recompute", 0):
            rows, last = decoder.rows(positions), decoder.rows(positions[-1:])
            hidden = self._first_layer(ids, rows, cache)
        for layer in range(1, num_layers):
            if cancelled():
                raise Cancelled("Stopped between two layers; nothing was kept of this run.")
            loader.place(layer)
            with recorder.device("recompute", layer):
                if layer < num_layers - 1:
                    hidden = decoder.run_layer(layer, hidden, rows, cache)
                else:
                    hidden = decoder.run_last_layer(hidden, rows, last, cache)
        return hidden

    def _first_layer(self, ids: Tensor, rows: Rows, cache: RequestCache) -> Tensor:
        """Returns the rows behind layer 0, whose K and V are written for every token: they depend on nothing else."""
        decoder, states = self.decoder, self.decoder.embed(ids)
        if rows.set.num_rows == ids.shape[0]:
            return decoder.run_layer(0, states, rows, cache)
        keys, values = decoder.project_kv(0, states)
        decoder.write(0, keys, values, decoder.rows(torch.arange(ids.shape[0])), cache)
        hidden = states[rows.set.positions]
        return decoder.attend(0, hidden, decoder.project_query(0, hidden), rows, cache)


def _parts(spans: Sequence[Span], selected_s: float, ttft_s: float) -> TtftParts:
    def total(stage: str) -> float:
        return sum((span.end_s - span.start_s for span in spans if span.lane == "device" and span.stage == stage), 0.0)

    probe, load_wait, head = total("probe"), total("load_wait"), total("head")
    return TtftParts(
        probe=probe,
        select=selected_s - probe,
        load_wait=load_wait,
        recompute=ttft_s - selected_s - load_wait - head,
        head=head,
    )
