"""The attention backend `qcfuse`: a backend of SGLang's that also attends the scattered rows of fused requests with our kernels.

`--attention-backend qcfuse`. On a CPU it is `torch_native`, on a GPU `triton`, for everything but a forward pass with fused requests.
"""

from typing import Any

from sglang.srt.mem_cache.memory_pool import KVWriteLoc
from torch import Tensor

from engine.serving.sglang.fuser import Fuser

NAME = "qcfuse"


def create_backend(runner: Any) -> Any:
    """Returns the backend for a model runner whose weights are loaded."""
    if str(runner.device).startswith("cuda"):
        from sglang.srt.layers.attention.triton_backend import TritonAttnBackend as Base
    else:
        from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend as Base

    class QCFuseAttnBackend(Base):
        """The base with the fused pass."""

        def __init__(self, runner: Any) -> None:
            super().__init__(runner)
            self.fuser = Fuser(runner)

        def forward_extend(self, q: Tensor, k: Tensor, v: Tensor, layer: Any, forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
            fused = getattr(forward_batch, "fused", None)
            if fused is None:
                return super().forward_extend(q, k, v, layer, forward_batch, *args, **kwargs)
            pool = runner.token_to_kv_pool
            for slots, keys, values in fused.stored(layer.layer_id):
                pool.set_kv_buffer(layer, KVWriteLoc(slots, None), keys, values)
            pool.set_kv_buffer(layer, KVWriteLoc(forward_batch.out_cache_loc, None), k, v)
            heads = q.view(-1, layer.tp_q_head_num, layer.qk_head_dim)
            out = fused.attention(heads, pool.get_key_buffer(layer.layer_id), pool.get_value_buffer(layer.layer_id))
            return out.reshape(q.shape)

    return QCFuseAttnBackend(runner)
