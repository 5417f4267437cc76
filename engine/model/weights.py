"""The tensors of a Llama-like decoder, with the projections that share an input fused row by row."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, slots=True)
class LayerWeights:
    """One layer. qkv: [(Hq + 2 Hkv) D, hidden]; gate_up: [2 F, hidden]. Biases and head norms may be absent."""

    input_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    post_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, eq=False, slots=True)
class DecoderWeights:
    """All tensors of a decoder. `head` is `embedding` itself where the model ties them."""

    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    final_norm: Tensor
    head: Tensor


def weights_from_state_dict(state: Mapping[str, Tensor], num_layers: int, device: torch.device, dtype: torch.dtype) -> DecoderWeights:
    """Returns the fused weights of a Llama, Mistral, Qwen2 or Qwen3 state dict (transformers' names).

    Tensors that are already of the right device and dtype and need no fusing are shared, not copied.
    """

    def take(name: str) -> Tensor:
        return state[name].detach().to(device=device, dtype=dtype)

    def maybe(name: str) -> Tensor | None:
        return take(name) if name in state else None

    def fuse(*names: str) -> Tensor:
        return torch.cat([state[name].detach() for name in names]).to(device=device, dtype=dtype)

    layers = []
    for i in range(num_layers):
        attn, mlp = f"model.layers.{i}.self_attn", f"model.layers.{i}.mlp"
        has_bias = f"{attn}.q_proj.bias" in state
        layers.append(
            LayerWeights(
                input_norm=take(f"model.layers.{i}.input_layernorm.weight"),
                qkv=fuse(*(f"{attn}.{part}_proj.weight" for part in "qkv")),
                qkv_bias=fuse(*(f"{attn}.{part}_proj.bias" for part in "qkv")) if has_bias else None,
                q_norm=maybe(f"{attn}.q_norm.weight"),
                k_norm=maybe(f"{attn}.k_norm.weight"),
                out=take(f"{attn}.o_proj.weight"),
                out_bias=maybe(f"{attn}.o_proj.bias"),
                post_norm=take(f"model.layers.{i}.post_attention_layernorm.weight"),
                gate_up=fuse(f"{mlp}.gate_proj.weight", f"{mlp}.up_proj.weight"),
                down=take(f"{mlp}.down_proj.weight"),
            )
        )
    embedding = take("model.embed_tokens.weight")
    head = maybe("lm_head.weight")
    return DecoderWeights(embedding, tuple(layers), take("model.norm.weight"), embedding if head is None else head)
