"""Fuses requests inside SGLang's forward pass: the built-in engine chooses the rows, SGLang's own layers compute them.

SGLang sees an ordinary prefill and has given every token its slot. Of a fused request only the chosen rows run through the layers; what
stands between them is put into their slots from the chunk store, layer by layer.
"""

import copy
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.errors import BadRequest, EngineError, ModelUnavailable, StoreError
from engine.runtime import Runtime
from engine.serving.sglang.fused_batch import FusedBatch, fused_batch
from engine.serving.sglang.jobs import FusionJob, make_job, outcome
from engine.serving.sglang.metadata import FIELD, FusionMeta
from engine.serving.sglang.shared_model import shared_model
from engine.settings import Settings
from kernels.batch import KeysValues

logger = logging.getLogger(__name__)


class Fuser:
    """The built-in engine over one server's weights and pool; `hindrance` is why it cannot be had, None where it can."""

    def __init__(self, runner: Any) -> None:
        self._pool, self._table = runner.token_to_kv_pool, runner.req_to_token_pool
        self.runtime: Runtime | None = None
        self.hindrance: str | None = None
        try:
            model = shared_model(runner.model, runner.server_args.model_path, runner.model_config.context_len)
            if self._pool.get_key_buffer(0).dtype != model.dtype:
                raise ModelUnavailable("The server's KV pool has another number type than its model; start it with --kv-cache-dtype auto.")
            settings = Settings.from_env()
            self.runtime = Runtime(model, _threads_of(settings))
        except EngineError as error:
            self.hindrance = str(error)
            logger.warning("requests are not fused: %s", error)

    def values(self) -> dict[str, Any]:
        """Returns what fuses and by what, as JSON holds it; only `hindrance` where nothing does."""
        if self.runtime is None:
            return {"hindrance": self.hindrance}
        spec, calibration = self.runtime.model.spec, self.runtime.calibration
        return {
            "hindrance": None,
            "model": spec.name,
            "revision": spec.revision,
            "weights": spec.weights,
            "num_layers": spec.num_layers,
            "dtype": spec.dtype,
            "device": _device_name(self.runtime.model.device),
            "num_threads": self.runtime.num_threads,
            "kernels": self.runtime.decoder.ops.name,
            "critical_layers": list(calibration.layers),
            "calibration": calibration.origin,
            "calibration_note": calibration.note,
        }

    @torch.inference_mode()
    def forward(self, requests: Sequence[Any], batch: Any, run: Callable[..., Tensor], ids: Tensor, at: Tensor) -> Tensor | None:
        """Returns the hidden states [tokens, hidden] of a batch, those of rows that were not computed zero; None where none is fused.

        Args:
            requests: (request, its FusionMeta or None) in the batch's order.
            run: the model's forward of (ids, positions, batch).
        """
        begun = time.perf_counter()
        spans = [(p, p + n) for p, n in zip(batch.extend_prefix_lens_cpu, batch.extend_seq_lens_cpu, strict=True)]
        rows = batch.req_pool_indices.tolist()
        slots = [self._table.req_to_token[row, :stop].long() for row, (_, stop) in zip(rows, spans, strict=True)]
        jobs = [self._job(i, *request, span, own) for i, (request, span, own) in enumerate(zip(requests, spans, slots, strict=True))]
        if not any(jobs):
            return None
        assert self.runtime is not None
        fused = fused_batch(self.runtime.decoder, jobs, spans, slots)
        try:
            hidden = run(ids[fused.keep], at[fused.keep], _smaller(batch, fused))
        except StoreError as error:
            for request, job in zip(requests, jobs, strict=True):
                if job is not None:
                    _tell(request[0], {"fused": False, "reason": f"{error} Everything was computed instead."})
            return None
        finally:
            fused.close()
        whole = hidden.new_zeros(ids.shape[0], hidden.shape[-1])
        whole[fused.keep] = hidden
        for request, job in zip(requests, jobs, strict=True):
            if job is not None:
                _tell(request[0], outcome(job) | {"forward_s": time.perf_counter() - begun, "batch_size": len(jobs)})
        return whole

    def _pool_layer(self, layer: int, slots: Tensor) -> KeysValues:
        """Returns what the pool holds of a layer at slots."""
        return KeysValues(self._pool.get_key_buffer(layer)[slots], self._pool.get_value_buffer(layer)[slots])

    def _job(self, index: int, req: Any, meta: FusionMeta | None, span: tuple[int, int], slots: Tensor) -> FusionJob | None:
        """Returns a request's job, None where it is an ordinary one or is computed in full for a reason that it is told.

        What it was told before, it is not told again: it writes its answer by now, or this is a later part of its prompt.
        """
        if meta is None or FIELD in (req.customized_info or {}):
            return None
        try:
            _check(req, span, self.hindrance)
            return make_job(self.runtime, meta, req.origin_input_ids, slots, span[0], f"fused {index}", self._pool_layer)
        except EngineError as error:
            _tell(req, {"fused": False, "reason": str(error)})
            return None


def _check(req: Any, span: tuple[int, int], hindrance: str | None) -> None:
    """Raises BadRequest where a request cannot be fused in this forward pass."""
    if hindrance is not None:
        raise BadRequest(hindrance)
    if span[1] < len(req.origin_input_ids) or req.extend_batch_idx > 1:
        raise BadRequest("The prompt is longer than what the server computes at once; start it with a larger --chunked-prefill-size.")
    if len(req.output_ids):
        raise BadRequest("The request was taken back to make room and computes what it had written as well.")
    if req.return_logprob and 0 <= req.logprob_start_len < len(req.origin_input_ids):
        raise BadRequest("The request wants log-probabilities of its prompt, which fusion does not compute; ask for the answer's only.")
    if req.return_hidden_states or req.lora_id is not None or req.input_embeds is not None or req.multimodal_inputs is not None:
        raise BadRequest("Requests with adapters, images, embeddings or hidden states are not fused.")


def _tell(req: Any, info: dict[str, Any]) -> None:
    """Puts what became of a request into the metadata of its answer, beside its first token."""
    req.customized_info = {**(req.customized_info or {}), FIELD: [info]}


def _smaller(batch: Any, fused: FusedBatch) -> Any:
    """Returns a batch that computes the chosen rows only."""
    smaller = copy.copy(batch)
    counts = [len(positions) for positions in fused.positions]
    smaller.fused = fused
    smaller.input_ids, smaller.positions = batch.input_ids[fused.keep], batch.positions[fused.keep]
    smaller.out_cache_loc = batch.out_cache_loc[fused.keep]
    smaller.extend_num_tokens, smaller.extend_seq_lens_cpu = sum(counts), counts
    smaller.extend_seq_lens = torch.tensor(counts, dtype=batch.extend_seq_lens.dtype, device=batch.extend_seq_lens.device)
    smaller.extend_start_loc = torch.cumsum(smaller.extend_seq_lens, 0) - smaller.extend_seq_lens
    return smaller


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.backends.cpu.get_cpu_capability()}"


def _threads_of(settings: Settings) -> Settings:
    """Returns settings that leave the number of threads as the server has set it."""
    return replace(settings, num_threads=torch.get_num_threads())
