"""The weights of a Llama-like decoder: projections that share an input side by side, laid out for the device once."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.linear import Linear


@dataclass(frozen=True, eq=False, slots=True)
class LayerWeights:
    """One layer. query: hidden -> Hq D; keys_values: hidden -> 2 Hkv D; gate_up: hidden -> 2 F. Head norms may be absent."""

    input_norm: Tensor
    query: Linear
    keys_values: Linear
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Linear
    post_norm: Tensor
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, eq=False, slots=True)
class DecoderWeights:
    """All weights of a decoder. `head` multiplies with `embedding` where the model ties them."""

    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    final_norm: Tensor
    head: Linear


def weights_from_state_dict(state: Mapping[str, Tensor], num_layers: int, device: torch.device, dtype: torch.dtype) -> DecoderWeights:
    """Returns the weights of a Llama, Mistral, Qwen2 or Qwen3 state dict (transformers' names), which is not needed afterwards."""

    def take(name: str) -> Tensor:
        return state[name].detach().to(device=device, dtype=dtype)

    def maybe(name: str) -> Tensor | None:
        return take(name) if name in state else None

    def linear(*names: str) -> Linear:
        """Returns the product with the named projections' rows one below the other."""
        biases = [take(f"{name}.bias") for name in names if f"{name}.bias" in state]
        return Linear(torch.cat([take(f"{name}.weight") for name in names]), torch.cat(biases) if biases else None)

    layers = []
    for i in range(num_layers):
        attn, mlp = f"model.layers.{i}.self_attn", f"model.layers.{i}.mlp"
        layers.append(
            LayerWeights(
                input_norm=take(f"model.layers.{i}.input_layernorm.weight"),
                query=linear(f"{attn}.q_proj"),
                keys_values=linear(f"{attn}.k_proj", f"{attn}.v_proj"),
                q_norm=maybe(f"{attn}.q_norm.weight"),
                k_norm=maybe(f"{attn}.k_norm.weight"),
                out=linear(f"{attn}.o_proj"),
                post_norm=take(f"model.layers.{i}.post_attention_layernorm.weight"),
                gate_up=linear(f"{mlp}.gate_proj", f"{mlp}.up_proj"),
                down=linear(f"{mlp}.down_proj"),
            )
        )
    embedding = take("model.embed_tokens.weight")
    head = maybe("lm_head.weight")
    return DecoderWeights(embedding, tuple(layers), take("model.norm.weight"), Linear(embedding if head is None else head))
