"""The rows of one forward pass in which some requests are fused: which are computed, and where all keys and values lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.model.decoder import Decoder
from engine.serving.sglang.jobs import FusionJob
from kernels.batch import Pages, RowBatch, row_batch
from kernels.rows import RowSet, row_set


@dataclass(frozen=True, eq=False, slots=True)
class FusedBatch:
    """A batch of requests, fused and ordinary ones.

    Args:
        jobs: of each request, None for an ordinary one.
        positions: int64 [R_b] of each request's computed rows; they lie one request behind the other.
        slots: int64 [T_b] of each request, where the pool keeps its positions.
        keep: int64 [R], the computed rows among all that SGLang wanted computed.
        row_sets: on a CPU, the rows of each request as its attention works through them.
        rows: on a GPU, the same of all requests at once.
    """

    decoder: Decoder
    jobs: tuple[FusionJob | None, ...]
    positions: tuple[Tensor, ...]
    slots: tuple[Tensor, ...]
    keep: Tensor
    row_sets: tuple[RowSet, ...] = ()
    rows: RowBatch | None = None

    def attention(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Returns [R, Hq, D]: every row sees its request's keys up to its own position. keys, values: the pool's, [slots, Hkv, D]."""
        ops = self.decoder.ops
        if self.rows is not None:
            return ops.sparse_prefill_attention(query, keys, values, self.rows, None, 0)[0]
        parts, start = [], 0
        for slots, rows in zip(self.slots, self.row_sets, strict=True):
            part = query[start : start + rows.num_rows].contiguous()
            parts.append(ops.selected_attention(part, keys[slots], values[slots], rows))
            start += rows.num_rows
        return torch.cat(parts)

    def stored(self, layer: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Returns for each fused request (slots, keys, values) of its context's stored KV at a layer, keys rotated. Raises StoreError."""
        return [stored_kv(self.decoder, job, layer) for job in self.jobs if job is not None and job.num_stored]

    def close(self) -> None:
        """Closes the files of all jobs."""
        for job in self.jobs:
            if job is not None:
                job.context.loader.close()


def fused_batch(
    decoder: Decoder,
    jobs: Sequence[FusionJob | None],
    spans: Sequence[tuple[int, int]],
    slots: Sequence[Tensor],
    paged: bool | None = None,
) -> FusedBatch:
    """Returns the batch.

    Args:
        spans: [start, stop) positions of each request that SGLang wants computed.
        paged: whether one kernel attends all requests over the pool; by the device without it.
    """
    device, starts, at = decoder.device, [], 0
    for start, stop in spans:
        starts.append(at)
        at += stop - start
    positions = [torch.arange(*span) if job is None else job.rows for job, span in zip(jobs, spans, strict=True)]
    keep = torch.cat([p - span[0] + begin for p, span, begin in zip(positions, spans, starts, strict=True)]).to(device)
    fixed: Any = (decoder, tuple(jobs), tuple(p.to(device) for p in positions), tuple(slots), keep)
    if not (device.type != "cpu" if paged is None else paged):
        return FusedBatch(*fixed, row_sets=tuple(row_set(p, decoder.spec.group_size, decoder.dtype) for p in positions))
    longest = max(len(s) for s in slots)
    table = torch.zeros(len(slots), longest, dtype=torch.int32, device=device)
    for i, own in enumerate(slots):
        table[i, : len(own)] = own
    return FusedBatch(*fixed, rows=row_batch(positions, device, pages=Pages(table, 1)))


def stored_kv(decoder: Decoder, job: FusionJob, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns slots [n], rotated keys and values [n, Hkv, D] of a job's context behind what the server has cached. Raises StoreError.

    Layer 0 follows from the embeddings; layers that the method has filled are its own; the others are read from the store.
    """
    cache, span = job.context.cache, slice(job.num_cached, job.prompt.question_start)
    if layer == 0:
        hidden = decoder.embed(job.context.ids[span])
        keys, values = decoder.project_kv(0, hidden)
        cos, sin = decoder.rope(torch.arange(span.start, span.stop))
        return job.slots[span], decoder.rotated(keys, cos, sin), values.contiguous()
    if layer >= job.plan.exact_layers:
        job.context.loader.place(layer)
    return job.slots[span], cache.keys[layer, span].contiguous(), cache.values[layer, span].contiguous()
