"""Small random models and a byte tokenizer, made in milliseconds without any download: for tests and demonstrations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from engine.errors import UnknownName
from engine.model.loader import LoadedModel, model_from_hf

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

TINY_FAMILIES = ("llama", "qwen3", "qwen2", "mistral")

_SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>")
_CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Returns a tokenizer with one token per UTF-8 byte (the id is the byte) and four special tokens from 256 on."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocab = {symbol: byte for byte, symbol in enumerate(_byte_symbols())}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _SPECIAL_TOKENS])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        bos_token="<|endoftext|>",
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=_CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )


def tiny_model(family: str = "llama", seed: int = 0) -> LoadedModel:
    """Returns a random decoder of 4 layers in float32 on the CPU; the same tensors as `tiny_hf_model` of the same arguments."""
    return model_from_hf(
        tiny_hf_model(family, seed),
        byte_tokenizer(),
        name=f"tiny-{family}",
        revision=f"seed-{seed}",
        weights_note=f"random weights, seed {seed}",
        device=torch.device("cpu"),
        dtype=torch.float32,
    )


def tiny_hf_model(family: str = "llama", seed: int = 0) -> PreTrainedModel:
    """Returns the transformers model behind `tiny_model`, for comparison with an independent forward pass.

    Raises UnknownName for a family that is not in TINY_FAMILIES.
    """
    from transformers import AutoModelForCausalLM

    build: Callable[..., PreTrainedModel] = AutoModelForCausalLM.from_config
    # Building a model draws from the global generator, which belongs to the caller.
    with torch.random.fork_rng(devices=[]):
        model = build(_tiny_config(family), attn_implementation="sdpa", dtype=torch.float32)
    _fill_parameters(model, seed)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def _tiny_config(family: str) -> PreTrainedConfig:
    from transformers import LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

    sizes: dict[str, Any] = dict(
        vocab_size=256 + len(_SPECIAL_TOKENS),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=256,
        eos_token_id=258,
        pad_token_id=259,
    )
    match family:
        case "llama":
            return LlamaConfig(**sizes, tie_word_embeddings=True)
        case "qwen3":
            # Wider than hidden_size / num_heads, as in Qwen3-0.6B, so that code which derives it fails.
            return Qwen3Config(**sizes, head_dim=32, tie_word_embeddings=False)
        case "qwen2":
            return Qwen2Config(**sizes, tie_word_embeddings=False)
        case "mistral":
            return MistralConfig(**sizes, sliding_window=None, tie_word_embeddings=False)
    raise UnknownName(f"Unknown tiny model family {family!r}; known ones are: {', '.join(TINY_FAMILIES)}.")


def _fill_parameters(model: nn.Module, seed: int) -> None:
    """Fills parameters in the order of their names; the spread makes attention peaked and logits clearly apart."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith(("q_norm.weight", "k_norm.weight")):
                # Head norms fix the length of queries and keys; without this their attention would be nearly flat.
                parameter.copy_(1.8 * (1 + 0.2 * noise))
            elif name.endswith("norm.weight"):
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.3 * noise)
            else:
                parameter.copy_(0.2 * noise)


def _byte_symbols() -> list[str]:
    """Returns the printable character that byte-level tokenizers write for each byte 0..255."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [symbols[byte] for byte in range(256)]
