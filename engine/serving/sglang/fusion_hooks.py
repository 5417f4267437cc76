"""Where fusion meets SGLang: a request's way from its arrival to the model's forward pass. Imports nothing heavy by itself."""

import logging
from collections.abc import Callable
from typing import Any

from engine.errors import BadRequest
from engine.serving.sglang.metadata import FIELD, FusionMeta, read_meta

logger = logging.getLogger(__name__)

BACKEND = "qcfuse"
MODELS = ("llama.LlamaModel", "qwen2.Qwen2Model", "qwen3.Qwen3Model")


class RequestIds(list[str]):
    """The ids of a forward batch's requests, and the requests with what each wants fused.

    SGLang copies batches field by field on their way to the model; this travels with the field it stands in.
    """

    def __init__(self, ids: list[str], requests: list[tuple[Any, FusionMeta | None]]) -> None:
        super().__init__(ids)
        self.requests = requests


def add_backend(runner: Any, *args: Any, **kwargs: Any) -> None:
    """Registers the attention backend, in the processes that run a model."""
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS, register_attention_backend

    if BACKEND not in ATTENTION_BACKENDS:
        from engine.serving.sglang.backend import create_backend

        register_attention_backend(BACKEND)(create_backend)


def read_request(scheduler: Any, req: Any, *args: Any, **kwargs: Any) -> None:
    """Reads what a request says once, as it is queued, and keeps approximate KV out of the cache that exact requests share.

    It is cached only where the request asks for it and brings a salt, so that no other request is served from it.
    """
    if hasattr(req, "fusion_meta"):
        return
    req.fusion_meta = None
    try:
        req.fusion_meta = read_meta(req.sampling_params.custom_params).fusion
    except BadRequest as error:
        req.customized_info = {FIELD: [{"fused": False, "reason": str(error)}]}
    if req.fusion_meta is not None and not (req.fusion_meta.keep and req.cache_salt):
        req.skip_radix_cache_insert = True


def attach(batch: Any, cls: type, schedule_batch: Any, *args: Any, **kwargs: Any) -> Any:
    """Lets a forward batch know its requests where one of them is to be fused."""
    requests = [(req, getattr(req, "fusion_meta", None)) for req in schedule_batch.reqs]
    if any(meta is not None for _, meta in requests):
        batch.rids = RequestIds(batch.rids, requests)
    return batch


def forward(original: Callable[..., Any], model: Any, input_ids: Any, positions: Any, forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs the model, fusing requests of a prefill where the backend can."""
    requests = getattr(forward_batch.rids, "requests", None)
    is_prefill = forward_batch.forward_mode.is_extend_without_speculative()
    if requests is None or not is_prefill or getattr(forward_batch, "fused", None) is not None:
        return original(model, input_ids, positions, forward_batch, *args, **kwargs)
    from sglang.srt.model_executor.forward_context import get_attn_backend

    fuser = getattr(get_attn_backend(), "fuser", None)
    if fuser is None or model.layers_to_capture or any(value is not None for value in (*args, *kwargs.values())):
        reason = f"The server was started without --attention-backend {BACKEND}, so that the request was computed in full."
        for req, meta in requests:
            if meta is not None and req.customized_info is None:
                req.customized_info = {FIELD: [{"fused": False, "reason": reason}]}
        return original(model, input_ids, positions, forward_batch, *args, **kwargs)
    hidden = fuser.forward(requests, forward_batch, lambda *batch: original(model, *batch), input_ids, positions)
    return original(model, input_ids, positions, forward_batch) if hidden is None else hidden
