"""Other ways to the attention of scattered rows: torch's with a mask, FlexAttention with a block mask, SGLang's kernel.

Each is a call on the same tensors that returns [R, Hq, D]. What can be prepared before the call is prepared before: it is theirs.
"""

import importlib
import importlib.util
import inspect
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Call = Callable[[], Tensor]
SGLANG_PLACES = ("sglang.kernels.ops.attention.extend_attention", "sglang.srt.layers.attention.triton_ops.extend_attention")


class NotHere(RuntimeError):
    """A rival is not installed, or is a version without the function."""


def torch_with_mask(query: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Call:
    """Torch's own attention under a boolean mask [R, T], KV heads repeated beforehand: its fast kernels take no groups with a mask."""
    group = query.shape[1] // keys.shape[1]
    q = query.transpose(0, 1)[None].contiguous()
    k, v = (t.transpose(0, 1).repeat_interleave(group, dim=0)[None].contiguous() for t in (keys, values))
    mask = torch.arange(keys.shape[0], device=keys.device)[None, :] <= positions[:, None]
    return lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[0].transpose(0, 1)


def flex_attention(query: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Call:
    """FlexAttention, compiled, its block mask made beforehand; uncompiled on a CPU, where only its result is of interest."""
    from torch.nn.attention.flex_attention import create_block_mask
    from torch.nn.attention.flex_attention import flex_attention as flex

    def is_visible(batch: Tensor, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        return key <= positions[row]

    mask = create_block_mask(is_visible, None, None, query.shape[0], keys.shape[0], device=str(query.device))
    attend = torch.compile(flex, dynamic=False) if query.device.type == "cuda" else flex
    q, k, v = (t.transpose(0, 1)[None].contiguous() for t in (query, keys, values))
    return lambda: attend(q, k, v, block_mask=mask, enable_gqa=True)[0].transpose(0, 1)


def sglang_unified(query: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Call:
    """SGLang's extend kernel of one stage, the rows' visibility as its custom mask. Raises NotHere."""
    function = _sglang_function()
    num_rows, num_keys = query.shape[0], keys.shape[0]
    mask = (torch.arange(num_keys, device=keys.device)[None, :] <= positions[:, None]).flatten()
    out = torch.empty_like(query)

    def pointers(stop: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.tensor([0, stop], dtype=dtype, device=query.device)

    given = {
        "q": query,
        "o": out,
        "k_buffer": keys,
        "v_buffer": values,
        "qo_indptr": pointers(num_rows),
        "kv_indptr": pointers(num_keys),
        "kv_indices": torch.arange(num_keys, device=query.device),
        "prefix_lens": torch.tensor([num_keys - num_rows], dtype=torch.int32, device=query.device),
        "max_len_extend": num_rows,
        "custom_mask": mask,
        "mask_indptr": pointers(mask.shape[0], torch.int64),
        "sm_scale": 1.0 / math.sqrt(query.shape[-1]),
        "is_causal": False,
    }
    # Later versions also ask for the scales of a quantised cache.
    given |= {name: 1.0 for name in ("k_scale", "v_scale") if name in inspect.signature(function).parameters}

    def call() -> Tensor:
        function(**given)
        return out

    return call


def _sglang_function() -> Callable[..., None]:
    if importlib.util.find_spec("sglang") is None:
        raise NotHere("sglang is not installed")
    for place in SGLANG_PLACES:
        if _exists(place) and hasattr(module := importlib.import_module(place), "extend_attention_fwd_unified"):
            return module.extend_attention_fwd_unified
    raise NotHere("this version of sglang has no unified extend kernel")


def _exists(module: str) -> bool:
    """Returns whether a module can be found, its packages included."""
    parts = module.split(".")
    return all(importlib.util.find_spec(".".join(parts[: i + 1])) for i in range(len(parts)))


RIVALS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Call]] = {
    "torch with a mask": torch_with_mask,
    "flex_attention": flex_attention,
    "sglang unified extend": sglang_unified,
}
