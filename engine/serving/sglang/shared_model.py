"""The built-in engine's model over the weights that SGLang has loaded: views of them, no second copy on a GPU.

SGLang keeps q, k and v, and gate and up, as one matrix each, in the order in which the built-in decoder wants them. On a CPU products
are packed for oneDNN, which is a copy.
"""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from engine.errors import ModelUnavailable
from engine.model import bundled
from engine.model.families import find_family
from engine.model.loader import LoadedModel
from engine.model.rope import rope_spec
from engine.model.source import ModelSource, find_source, read_config
from engine.model.spec import ModelSpec
from engine.model.weights import DecoderWeights, LayerWeights
from kernels.linear import Linear

FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


def shared_model(model: Any, model_path: str, max_context: int) -> LoadedModel:
    """Returns the decoder that computes with the weights of an SGLang model. Raises ModelUnavailable with the reason why it cannot.

    Args:
        model: SGLang's, one of FAMILIES, neither quantised nor split over several GPUs.
        max_context: positions that the server serves.
    """
    from transformers import AutoTokenizer

    source = _source(model_path)
    architecture, config = read_config(source.folder)
    if architecture not in FAMILIES:
        raise ModelUnavailable(f"The architecture {architecture!r} is not fused in SGLang; fused ones are: {', '.join(FAMILIES)}.")
    find_family(architecture).check(config)
    state = {name: parameter.detach() for name, parameter in model.named_parameters()}
    head_dim = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    num_query, num_kv = config.num_attention_heads * head_dim, config.num_key_value_heads * head_dim
    first = state.get("model.layers.0.self_attn.qkv_proj.weight")
    if first is None or tuple(first.shape) != (num_query + 2 * num_kv, config.hidden_size) or not first.dtype.is_floating_point:
        raise ModelUnavailable("The server's weights are split or quantised, which fusion cannot read; start it with --tp 1, unquantised.")
    embedding = state["model.embed_tokens.weight"][: config.vocab_size]
    layers = tuple(_layer(state, i, num_query) for i in range(config.num_hidden_layers))
    head = state.get("lm_head.weight")
    tied = head is None or config.tie_word_embeddings
    weights = DecoderWeights(embedding, layers, state["model.norm.weight"], Linear(embedding if tied else head[: config.vocab_size]))
    dtype = embedding.dtype
    spec = ModelSpec(
        name=source.name,
        revision=source.revision,
        weights=source.weights_note,
        architecture=architecture,
        num_layers=config.num_hidden_layers,
        hidden_size=config.hidden_size,
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        vocab_size=config.vocab_size,
        max_context=min(max_context, config.max_position_embeddings),
        norm_eps=config.rms_norm_eps,
        rope=rope_spec(config),
        dtype=str(dtype).removeprefix("torch."),
        eos_token_ids=(),
    )
    tokenizer = AutoTokenizer.from_pretrained(source.folder, local_files_only=True, trust_remote_code=False)
    return LoadedModel(spec, weights, tokenizer, embedding.device, dtype)


def _source(model_path: str) -> ModelSource:
    """Returns where the weights are and what chunks computed with them are addressed by: the built-in engine's name and revision.

    The folder into which the bundled model was converted goes by that model's own name.
    """
    source = find_source(model_path)
    if (source.folder / "manifest.json").is_file() and Path(source.folder).name.startswith(bundled.MODEL_NAME.lower()):
        try:
            return ModelSource(source.folder, bundled.MODEL_NAME, *bundled.stored_origin(source.folder))
        except (OSError, KeyError, json.JSONDecodeError):
            return source
    return source


def _layer(state: dict[str, Tensor], i: int, num_query: int) -> LayerWeights:
    attn, mlp, layer = f"model.layers.{i}.self_attn", f"model.layers.{i}.mlp", f"model.layers.{i}"
    try:
        qkv, bias = state[f"{attn}.qkv_proj.weight"], state.get(f"{attn}.qkv_proj.bias")
        return LayerWeights(
            input_norm=state[f"{layer}.input_layernorm.weight"],
            query=Linear(qkv[:num_query], None if bias is None else bias[:num_query]),
            keys_values=Linear(qkv[num_query:], None if bias is None else bias[num_query:]),
            q_norm=state.get(f"{attn}.q_norm.weight"),
            k_norm=state.get(f"{attn}.k_norm.weight"),
            out=Linear(state[f"{attn}.o_proj.weight"]),
            post_norm=state[f"{layer}.post_attention_layernorm.weight"],
            gate_up=Linear(state[f"{mlp}.gate_up_proj.weight"]),
            down=Linear(state[f"{mlp}.down_proj.weight"]),
        )
    except KeyError as error:
        raise ModelUnavailable(f"The server's model has no float weight {error} for fusion to read; start it unquantised.") from error
