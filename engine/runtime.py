"""A loaded model with everything that serves it: prompts, chunk caches, anchors, pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from engine.chunks.anchors import AnchorBank
from engine.chunks.precompute import ChunkSource
from engine.chunks.prefetch import Placed
from engine.chunks.store import ChunkStore
from engine.errors import BackendUnavailable, Cancelled
from engine.fusion.pipeline import FusionPipeline
from engine.model.cache import CachePool
from engine.model.calibration import Calibration, find_calibration
from engine.model.decoder import Decoder
from engine.model.device import set_threads
from engine.model.loader import LoadedModel, load_model
from engine.model.prompt import Prompt, PromptBuilder
from engine.settings import Settings
from engine.types import FusionRequest, RunChunk
from kernels.ops import KernelsUnavailable, load_ops

Progress = Callable[[str, float], None]


class Prepared(NamedTuple):
    """A request's prompt with its stored chunks at their places (the system part first) and where they came from."""

    prompt: Prompt
    placed: tuple[Placed, ...]
    chunks: tuple[RunChunk, ...]


class Runtime:
    """Serves one model; used by one request at a time."""

    def __init__(self, model: LoadedModel, settings: Settings, store: ChunkStore | None = None, depth: int = 2) -> None:
        try:
            ops = load_ops(settings.kernels, model.device.type)
        except KernelsUnavailable as error:
            raise BackendUnavailable(str(error)) from None
        self.model, self.settings = model, settings
        self.num_threads = set_threads(settings)
        self.decoder = Decoder(model, ops)
        self.prompts = PromptBuilder(model.tokenizer, model.spec.max_context)
        self.store = store or ChunkStore(settings.cache_dir / "chunks", settings.chunk_capacity_bytes)
        self.source = ChunkSource(self.decoder, self.store, torch.from_numpy(self.prompts.system.ids))
        self.anchors = AnchorBank(self.decoder)
        self.pool = CachePool(model.spec, model.dtype, model.device)
        self.calibration: Calibration = find_calibration(model.spec, settings.cache_dir)
        self.pipeline = FusionPipeline(self.decoder, self.anchors, self.calibration.layers, depth)

    @torch.inference_mode()
    def prepare(
        self, request: FusionRequest, progress: Progress = lambda text, share: None, cancelled: Callable[[], bool] = lambda: False
    ) -> Prepared:
        """Returns the prompt of a request with its chunk caches, computing those the store lacks.

        Raises BadRequest, Cancelled; chunks that were finished before a cancellation stay stored.
        """
        segments = [self.prompts.chunk(chunk) for chunk in request.chunks]
        prompt = self.prompts.build(segments, request.question, request.max_new_tokens)
        placed = [Placed(self.source.system(), 0, prompt.system_len)]
        shown: list[RunChunk] = []
        for i, (chunk, segment, (start, stop)) in enumerate(zip(request.chunks, segments, prompt.chunk_spans, strict=True)):
            if cancelled():
                raise Cancelled("Stopped while chunk caches were prepared; the finished ones are kept.")
            ids = torch.from_numpy(segment.ids)
            stored, seconds = self.source.get(ids, request.chunk_context), 0.0
            source = stored.source if stored else "computed"
            if stored is None:
                progress(f"Computing the cache of chunk {i + 1} of {len(segments)}: {chunk.title or chunk.chunk_id}", i / len(segments))
                stored, seconds = self.source.compute(ids, request.chunk_context, cancelled)
            # Held open from here, so that no other process's eviction can take it away under this request.
            stored.open()
            placed.append(Placed(stored, start, stop))
            shown.append(
                RunChunk(chunk.chunk_id, chunk.title, stored.key.hash, start, stop, chunk.relevance, source, stored.size_bytes, seconds)
            )
        return Prepared(prompt, tuple(placed), tuple(shown))

    def text(self, ids: Sequence[int]) -> str:
        """Returns the text of answer tokens."""
        return self.model.tokenizer.decode(list(ids), skip_special_tokens=True)


def load_runtime(name: str, settings: Settings, store: ChunkStore | None = None) -> Runtime:
    """Returns the runtime of a model by name. Raises ModelUnavailable, BackendUnavailable."""
    return Runtime(load_model(name, settings), settings, store)
