import pytest
import torch

from engine.errors import ModelUnavailable
from engine.model.rope import rope_spec, rope_tables

POSITIONS = torch.tensor([0, 1, 2, 2, 37, 4095, 11, 100_000])
KINDS = {
    "default": {"rope_type": "default", "rope_theta": 100_000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 512,
    },
    "yarn": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 1024},
}


def _config(rope_parameters: dict, family: str = "llama"):
    from transformers import LlamaConfig, Qwen2Config, Qwen3Config

    sizes = dict(
        hidden_size=96, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096, rope_parameters=rope_parameters
    )
    match family:
        case "qwen3":
            return Qwen3Config(**sizes, head_dim=40)
        case "qwen2":
            return Qwen2Config(**sizes)
    return LlamaConfig(**sizes)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_equal_those_of_transformers(kind: str, family: str) -> None:
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

    config = _config(dict(KINDS[kind]), family)
    reference = {"llama": LlamaRotaryEmbedding, "qwen2": Qwen2RotaryEmbedding, "qwen3": Qwen3RotaryEmbedding}[family](config)
    spec = rope_spec(config)
    assert spec.kind == kind
    for dtype in (torch.float32, torch.bfloat16):
        cos, sin = reference(torch.zeros(1, dtype=dtype), POSITIONS[None])
        half = cos.shape[-1] // 2
        tables = rope_tables(spec, POSITIONS, dtype, torch.device("cpu"))
        assert tables.cos.dtype == tables.sin.dtype == dtype
        assert torch.equal(tables.cos, cos[0, :, :half])
        assert torch.equal(tables.sin, sin[0, :, half:])


def test_yarn_scales_cosines_and_sines() -> None:
    spec = rope_spec(_config(dict(KINDS["yarn"])))
    assert spec.attention_scaling > 1.1
    cos, _ = rope_tables(spec, torch.tensor([0]), torch.float32, torch.device("cpu"))
    assert torch.allclose(cos, torch.full_like(cos, spec.attention_scaling))


def test_a_row_does_not_depend_on_the_others() -> None:
    spec = rope_spec(_config(dict(KINDS["llama3"])))
    together = rope_tables(spec, POSITIONS, torch.float32, torch.device("cpu"))
    for i, position in enumerate(POSITIONS):
        alone = rope_tables(spec, position[None], torch.float32, torch.device("cpu"))
        assert torch.equal(alone.cos[0], together.cos[i])
        assert torch.equal(alone.sin[0], together.sin[i])


@pytest.mark.parametrize(
    ("rope_parameters", "words"),
    [
        ({"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}, ["dynamic", "length of the prompt", "llama3"]),
        ({"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 12, "long_factor": [2.0] * 12}, ["longrope", "two sets"]),
        ({"rope_type": "proportional", "rope_theta": 1e4}, ["proportional", "not known"]),
    ],
    ids=["dynamic", "longrope", "unknown"],
)
def test_kinds_that_are_not_fixed_are_refused_with_the_reason(rope_parameters: dict, words: list[str]) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        rope_spec(_config(rope_parameters))
    for word in words:
        assert word in str(caught.value)


def test_incomplete_parameters_are_refused() -> None:
    config = _config(dict(KINDS["yarn"]))
    del config.rope_parameters["factor"]
    with pytest.raises(ModelUnavailable, match="factor"):
        rope_spec(config)


def test_partly_rotated_heads_are_refused() -> None:
    config = _config({**KINDS["linear"], "partial_rotary_factor": 0.5})
    with pytest.raises(ModelUnavailable, match="12 of the 24"):
        rope_spec(config)
