"""A loaded model with everything that serves it: prompts, chunk caches, anchors, pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.chunks.anchors import AnchorBank
from engine.chunks.precompute import ChunkSource
from engine.chunks.prefetch import Placed
from engine.chunks.store import ChunkStore
from engine.errors import BackendUnavailable, Cancelled
from engine.fusion.pipeline import FillPrefix, FusionPipeline
from engine.fusion.steps import DecodeSteps
from engine.model.answer_text import answer_text
from engine.model.cache import CachePool
from engine.model.calibration import Calibration, find_calibration
from engine.model.decoder import Decoder
from engine.model.device import keep_freed_memory, set_threads
from engine.model.head_weights import find_head_weights
from engine.model.loader import LoadedModel, load_model
from engine.model.primer import find_primer, primers
from engine.model.prompt import Frame, Prompt, PromptBuilder, Segment
from engine.settings import Settings
from engine.types import ChunkContext, FusionRequest, RunChunk
from kernels.ops import KernelsUnavailable, load_ops

Progress = Callable[[str, float], None]


class Prepared(NamedTuple):
    """A request's prompt, and by chunk context its stored chunks at their places (the system part first) and their origin.

    fill_prefix: puts what stands before the chunks into a request's cache; None where that is the stored system part.
    """

    prompt: Prompt
    placed: dict[ChunkContext, tuple[Placed, ...]]
    chunks: dict[ChunkContext, tuple[RunChunk, ...]]
    fill_prefix: FillPrefix | None = None


class Prefix(NamedTuple):
    """What stands around the chunks of a conversation's turn, and how its exact part gets into a request's cache."""

    frame: Frame
    fill: FillPrefix


class Runtime:
    """Serves one model; used by one request at a time."""

    def __init__(self, model: LoadedModel, settings: Settings, store: ChunkStore | None = None, depth: int = 2) -> None:
        try:
            ops = load_ops(settings.kernels, model.device.type)
        except KernelsUnavailable as error:
            raise BackendUnavailable(str(error)) from None
        self.model, self.settings = model, settings
        self.num_threads = set_threads(settings)
        keep_freed_memory()
        self.decoder = Decoder(model, ops)
        self.steps = DecodeSteps(self.decoder)
        self.prompts = PromptBuilder(model.tokenizer, model.spec.max_context)
        is_direct = settings.page_cache == "direct"
        self.store = store or ChunkStore(settings.cache_dir / "chunks", settings.chunk_capacity_bytes, is_direct)
        self.source = ChunkSource(self.decoder, self.store, _prefixes(self.prompts, model.spec.name), _repeat_ids(self.prompts))
        self.anchors = AnchorBank(self.decoder)
        self.pool = CachePool(model.spec, model.dtype, model.device)
        self.calibration: Calibration = find_calibration(model.spec, settings.cache_dir)
        self.pipeline = FusionPipeline(
            self.decoder, self.anchors, self.calibration.layers, depth, find_head_weights(model.spec, settings.cache_dir)
        )

    @torch.inference_mode()
    def prepare(
        self,
        request: FusionRequest,
        progress: Progress = lambda text, share: None,
        cancelled: Callable[[], bool] = lambda: False,
        contexts: Sequence[ChunkContext] = (),
        prefix: Prefix | None = None,
    ) -> Prepared:
        """Returns the prompt of a request with its chunk caches, computing those the store lacks.

        Raises BadRequest, Cancelled; chunks that were finished before a cancellation stay stored.

        Args:
            contexts: chunk contexts that methods will read; the request's own is always among them.
            prefix: what stands before the chunks; the stored system part without it.
        """
        segments = [self.prompts.chunk(chunk) for chunk in request.chunks]
        prompt = self.prompts.build(segments, request.question, request.max_new_tokens, prefix.frame if prefix else None)
        wanted = tuple(dict.fromkeys((request.chunk_context, *contexts)))
        system = None if prefix else self.source.system()
        if system is not None:
            system.open()
        first = Placed(system, 0, prompt.system_len, is_exact=True)
        done = [
            self._place(request, prompt, first, segments, context, _part_of(progress, i, len(wanted)), cancelled)
            for i, context in enumerate(wanted)
        ]
        placed, chunks = (dict(zip(wanted, parts, strict=True)) for parts in zip(*done, strict=True))
        return Prepared(prompt, placed, chunks, prefix.fill if prefix else None)

    def _place(
        self,
        request: FusionRequest,
        prompt: Prompt,
        first: Placed,
        segments: Sequence[Segment],
        context: ChunkContext,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> tuple[tuple[Placed, ...], tuple[RunChunk, ...]]:
        """Returns the chunks of one context at their places behind the first part, and the chunks' origin."""
        placed, shown = [first], list[RunChunk]()
        # What a chunk "behind the system part" was computed behind is what stands before the first one here.
        is_system = np.array_equal(prompt.ids[: prompt.system_len], self.prompts.system.ids)
        for i, (chunk, segment, (start, stop)) in enumerate(zip(request.chunks, segments, prompt.chunk_spans, strict=True)):
            if cancelled():
                raise Cancelled("Stopped while chunk caches were prepared; the finished ones are kept.")
            ids, behind = torch.from_numpy(segment.ids), _behind(context, i)
            stored = self.source.get(ids, behind)
            source = stored.source if stored else "computed"
            if stored is None:
                progress(f"Computing the cache of chunk {i + 1} of {len(segments)}: {chunk.title or chunk.chunk_id}", i / len(segments))
                stored = self.source.compute(ids, behind, cancelled)
            # Held open from here, so that no other process's eviction can take it away under this request.
            stored.open()
            placed.append(Placed(stored, start, stop, is_exact=i == 0 and behind == "system" and is_system))
            origin = (stored.key.hash, start, stop, chunk.relevance, source, stored.size_bytes, stored.time_s)
            shown.append(RunChunk(chunk.chunk_id, chunk.title, *origin))
        return tuple(placed), tuple(shown)

    def text(self, ids: Sequence[int]) -> str:
        """Returns the text of answer tokens."""
        return answer_text(self.model.tokenizer, ids)


def _part_of(progress: Progress, index: int, count: int) -> Progress:
    """Returns the progress of one of several equal parts."""
    return lambda text, share: progress(text, (index + share) / count)


def _behind(context: ChunkContext, index: int) -> str:
    """Returns the prefix that the chunk at a place of the request is computed behind."""
    if context in ("primed", "primed-mean") and index == 0:
        return "system"
    return "primed" if context == "primed-one" else context


def _prefixes(prompts: PromptBuilder, model: str) -> dict[str, tuple[Tensor, ...]]:
    """Returns the ids of what chunks are computed behind: the system part, and with it the model's primer or each of all."""

    def behind_system(text: str) -> Tensor:
        return torch.from_numpy(np.concatenate([prompts.system.ids, prompts.tokenize(text).ids]))

    return {
        "system": (behind_system(""),),
        "primed": (behind_system(find_primer(model).text),),
        "primed-mean": tuple(behind_system(primer.text) for primer in primers()),
    }


def _repeat_ids(prompts: PromptBuilder) -> Tensor:
    """Returns the ids of the instruction behind which KVzip scores are taken (arXiv 2606.05875, 3.3.3)."""
    return torch.from_numpy(prompts.tokenize("Repeat the previous context exactly.").ids)


def load_runtime(name: str, settings: Settings, store: ChunkStore | None = None) -> Runtime:
    """Returns the runtime of a model by name. Raises ModelUnavailable, BackendUnavailable."""
    return Runtime(load_model(name, settings), settings, store)
