import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.errors import UnknownName
from engine.model.loader import LoadedModel
from engine.model.rope import rope_tables
from engine.model.tiny import TINY_FAMILIES, byte_tokenizer, tiny_hf_model, tiny_model

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]


def _rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _plain_forward(model: LoadedModel, ids: Tensor) -> Tensor:
    """Returns logits [n, vocab] of token ids [n], every step written out."""
    spec, n = model.spec, len(ids)
    cos, sin = rope_tables(spec.rope, torch.arange(n), torch.float32, torch.device("cpu"))
    causal = torch.full((n, n), float("-inf")).triu(1)
    x = model.weights.embedding[ids]
    for layer in model.weights.layers:
        normed = _rms(x, layer.input_norm, spec.norm_eps)
        query, both = (F.linear(normed, w.weight, w.bias).view(n, -1, spec.head_dim) for w in (layer.query, layer.keys_values))
        q, k, v = (part.transpose(0, 1) for part in (query, *both.chunk(2, dim=1)))
        if layer.q_norm is not None:
            q, k = _rms(q, layer.q_norm, spec.norm_eps), _rms(k, layer.k_norm, spec.norm_eps)
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        k, v = k.repeat_interleave(spec.group_size, dim=0), v.repeat_interleave(spec.group_size, dim=0)
        attention = torch.softmax(q @ k.transpose(1, 2) * spec.head_dim**-0.5 + causal, dim=-1)
        x = x + F.linear((attention @ v).transpose(0, 1).reshape(n, -1), layer.out.weight, layer.out.bias)
        gate, up = F.linear(_rms(x, layer.post_norm, spec.norm_eps), layer.gate_up.weight).chunk(2, dim=-1)
        x = x + F.linear(F.silu(gate) * up, layer.down.weight)
    return F.linear(_rms(x, model.weights.final_norm, spec.norm_eps), model.weights.head.weight)


@pytest.mark.parametrize("family", TINY_FAMILIES)
@torch.no_grad()
def test_weights_and_spec_give_the_logits_of_transformers(family: str) -> None:
    model, reference = tiny_model(family, seed=3), tiny_hf_model(family, seed=3)
    ids = torch.tensor(model.tokenizer("The fused rows must keep their order: q, then k, then v.")["input_ids"])
    expected = reference(ids[None]).logits[0]
    torch.testing.assert_close(_plain_forward(model, ids), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", TINY_FAMILIES)
def test_the_same_seed_gives_the_same_model_and_another_seed_another(family: str) -> None:
    first, again, other = (tiny_model(family, seed).weights.layers[2].query.weight for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    tiny_model("llama")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("family", TINY_FAMILIES)
@torch.no_grad()
def test_attention_is_peaked_and_logits_are_apart(family: str) -> None:
    model = tiny_hf_model(family)
    model.set_attn_implementation("eager")
    ids = torch.tensor([byte_tokenizer()("Paris is the capital of France. " * 4)["input_ids"]])
    output = model(ids, output_attentions=True)
    last_row = torch.stack(output.attentions)[:, 0, :, -1]
    perplexity = torch.exp(-(last_row * (last_row + 1e-12).log()).sum(-1)).mean()
    assert perplexity < 0.4 * ids.shape[1]
    best, second = output.logits[0].topk(2, dim=-1).values.unbind(-1)
    assert (best - second).median() > 0.1


def test_sizes_of_the_families() -> None:
    llama, qwen3, qwen2 = (tiny_model(family) for family in ("llama", "qwen3", "qwen2"))
    assert (llama.spec.head_dim, qwen3.spec.head_dim) == (16, 32)
    assert llama.spec.group_size == qwen3.spec.group_size == 2
    assert torch.equal(llama.weights.head.weight, llama.weights.embedding)
    assert not torch.equal(qwen3.weights.head.weight, qwen3.weights.embedding)
    assert qwen3.weights.layers[0].q_norm.shape == qwen3.weights.layers[0].k_norm.shape == (32,)
    assert llama.weights.layers[0].query.bias is None
    assert qwen2.weights.layers[0].query.bias.shape == (4 * 16,) and qwen2.weights.layers[0].keys_values.bias.shape == (2 * 2 * 16,)
    assert llama.spec.eos_token_ids == (llama.tokenizer.eos_token_id,)
    assert llama.spec.max_context == 2048


def test_an_unknown_family_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"gpt2.*llama, qwen3"):
        tiny_model("gpt2")


@given(text=st.text(max_size=60))
@settings(max_examples=50, deadline=None)
def test_a_byte_is_a_token_and_offsets_name_its_character(text: str) -> None:
    tokenizer = byte_tokenizer()
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    assert encoded["input_ids"] == list(text.encode("utf-8"))
    assert tokenizer.decode(encoded["input_ids"]) == text
    characters = [i for i, character in enumerate(text) for _ in character.encode("utf-8")]
    assert encoded["offset_mapping"] == [(i, i + 1) for i in characters]


def test_chat_template_and_special_tokens() -> None:
    tokenizer = byte_tokenizer()
    text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert text == "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert ids.count(257) == 3 and ids.count(258) == 2
    assert max(ids) < len(tokenizer) == 260
    assert "im_start" not in tokenizer.decode(ids, skip_special_tokens=True)
    assert tokenizer.encode("x") == [120]
