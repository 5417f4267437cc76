"""Rotary embeddings whose frequencies are fixed: the same for a token whatever the length of its prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from engine.errors import ModelUnavailable
from engine.model.spec import RopeSpec

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

FIXED_KINDS = ("default", "llama3", "linear", "yarn")
_MOVING_KINDS = {
    "dynamic": "its frequencies change with the length of the prompt",
    "longrope": "it switches between two sets of frequencies at a prompt length",
}


class RotaryTables(NamedTuple):
    """Cosines and sines of n positions, each [n, D/2]; the halves of a head share them."""

    cos: Tensor
    sin: Tensor


def rope_spec(config: PreTrainedConfig) -> RopeSpec:
    """Returns the rotary embedding of a transformers config, with the frequencies transformers itself computes.

    Raises ModelUnavailable for kinds whose frequencies are not fixed, since keys stored for one prompt would be wrong in another.
    """
    parameters = getattr(config, "rope_parameters", None) or {}
    kind = str(parameters.get("rope_type"))
    if kind not in FIXED_KINDS:
        reason = _MOVING_KINDS.get(kind, "its rule is not known here")
        raise ModelUnavailable(
            f"This model's rotary embedding is of the kind {kind!r} and {reason}, so stored keys can't be reused; "
            f"take a model with one of: {', '.join(FIXED_KINDS)}."
        )

    try:
        inv_freq, attention_scaling = _frequencies(config, kind)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ModelUnavailable(f"The rope_parameters {parameters} of this model are not valid ({error}); check config.json.") from error
    head_dim = _head_dim(config)
    if 2 * len(inv_freq) != head_dim:
        raise ModelUnavailable(
            f"This model rotates {2 * len(inv_freq)} of the {head_dim} values of a head; only models that rotate all of them are supported."
        )
    return RopeSpec(kind, tuple(inv_freq.tolist()), float(attention_scaling))


def _frequencies(config: PreTrainedConfig, kind: str) -> tuple[Tensor, float]:
    """Returns inv_freq, float32 [D/2], and the scaling of the cosines and sines."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    if kind != "default":
        return ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    # transformers has this rule in each model's own module only; importing one takes seconds.
    dim = int(_head_dim(config) * (config.rope_parameters.get("partial_rotary_factor") or 1.0))
    return 1.0 / (config.rope_parameters["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)), 1.0


def _head_dim(config: PreTrainedConfig) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def rope_tables(spec: RopeSpec, positions: Tensor, dtype: torch.dtype, device: torch.device) -> RotaryTables:
    """Returns the cosines and sines at `positions`, computed in float32 and scaled by `attention_scaling` before the cast.

    Args:
        positions: int64 [n], in any order, with repeats allowed.
    """
    inv_freq = torch.tensor(spec.inv_freq, dtype=torch.float32, device=device)
    angles = positions.to(device=device, dtype=torch.float32)[:, None] * inv_freq
    cos, sin = angles.cos() * spec.attention_scaling, angles.sin() * spec.attention_scaling
    return RotaryTables(cos.to(dtype), sin.to(dtype))
