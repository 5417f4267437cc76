"""Model families: what each architecture of transformers means for the one decoder. Knows configs and state dicts, no files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.errors import ModelUnavailable
from engine.model.weights import DecoderWeights, weights_from_state_dict
from engine.registry import Registry

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


class Family:
    """A Llama-like decoder: RMSNorm, rotary attention with grouped heads, gated SiLU. Every token sees all before it."""

    def check(self, config: PreTrainedConfig) -> None:
        """Raises ModelUnavailable where the config asks for something the decoder does not compute."""
        if config.hidden_act not in ("silu", "swish"):
            raise ModelUnavailable(f"This model's activation is {config.hidden_act!r}; only 'silu' is supported.")
        if getattr(config, "mlp_bias", False):
            raise ModelUnavailable("This model has biases in its MLP (mlp_bias is true), which the decoder does not add; take one without.")

    def window(self, config: PreTrainedConfig) -> int | None:
        """Returns the number of tokens a layer may look back, or None where there is no bound."""
        return None

    def weights(self, state: Mapping[str, Tensor], num_layers: int, device: torch.device, dtype: torch.dtype) -> DecoderWeights:
        """Returns the decoder's tensors from transformers' names."""
        return weights_from_state_dict(state, num_layers, device, dtype)


class MistralFamily(Family):
    """Every layer has the window, where there is one."""

    def window(self, config: PreTrainedConfig) -> int | None:
        window: int | None = config.sliding_window
        return window


class QwenFamily(Family):
    """Some layers have the window, where it is used at all; `layer_types` says which."""

    def window(self, config: PreTrainedConfig) -> int | None:
        window: int | None = config.sliding_window
        return window if "sliding_attention" in config.layer_types else None


FAMILIES: Registry[Family] = Registry("model architecture")
FAMILIES.register("LlamaForCausalLM")(Family)
FAMILIES.register("MistralForCausalLM")(MistralFamily)
FAMILIES.register("Qwen2ForCausalLM")(QwenFamily)
FAMILIES.register("Qwen3ForCausalLM")(QwenFamily)


def find_family(architecture: str) -> Family:
    """Returns the adapter of an architecture. Raises ModelUnavailable naming the supported ones."""
    if architecture not in FAMILIES.names():
        raise ModelUnavailable(f"The architecture {architecture!r} is not supported; supported ones are: {', '.join(FAMILIES.names())}.")
    return FAMILIES.create(architecture)
