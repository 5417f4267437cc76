"""Checkpoints as people report them: what other programs read wrong, or load in silence, is read right or refused here."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import ModelUnavailable
from engine.model.loader import load_model
from engine.model.tiny import byte_tokenizer, tiny_hf_model, tiny_model
from engine.settings import Settings

CPU = Settings(device="cpu")
TINY = tiny_model("llama").weights


@pytest.fixture
def folder(tmp_path) -> Path:
    tiny_hf_model("llama").save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    return tmp_path


def change_weights(folder: Path, change) -> None:
    """Replaces the tensors of a folder, {name: tensor}, by what `change` makes of them."""
    tensors = {name: tensor.contiguous().clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(change(tensors), folder / "model.safetensors", metadata={"format": "pt"})


def change_json(folder: Path, name: str, **values: object) -> None:
    file = folder / name
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.parametrize(("dtype", "largest", "word"), [(torch.float8_e4m3fn, 448, "F8_E4M3"), (torch.int8, 127, "I8")])
def test_scaled_weights_are_refused_though_the_config_does_not_name_them(folder, dtype, largest, word) -> None:
    def quantised(tensors):
        made = dict(tensors)
        for name in [name for name in tensors if name.endswith("proj.weight")]:
            scale = tensors[name].abs().max() / largest
            made[name] = (tensors[name] / scale).to(dtype)
            made[name.replace("weight", "weight_scale")] = scale.reshape(1)
        return made

    change_weights(folder, quantised)
    (folder / "hf_quant_config.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match=f"quantised .*is of the type {word}.*float version"):
        load_model(str(folder), CPU)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_float_type_is_read(folder, dtype) -> None:
    change_weights(folder, lambda tensors: {name: tensor.to(dtype) for name, tensor in tensors.items()})
    loaded = load_model(str(folder), CPU).weights.embedding
    torch.testing.assert_close(loaded, TINY.embedding, rtol=1e-2, atol=1e-2)
    assert loaded.dtype is torch.float32


def test_a_head_that_is_stored_beside_a_tied_embedding_and_differs_is_used(folder) -> None:
    other = torch.randn(260, 64)
    change_weights(folder, lambda tensors: tensors | {"lm_head.weight": other.clone()})
    weights = load_model(str(folder), CPU).weights
    assert torch.equal(weights.head.weight, other) and torch.equal(weights.embedding, TINY.embedding)


def test_buffers_of_old_checkpoints_are_passed_over(folder) -> None:
    change_weights(folder, lambda tensors: tensors | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)})
    assert torch.equal(load_model(str(folder), CPU).weights.embedding, TINY.embedding)


def test_shards_are_read_with_their_index_and_refused_without(folder) -> None:
    (folder / "model.safetensors").unlink()
    tiny_hf_model("llama").save_pretrained(folder, max_shard_size="60KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 2 and torch.equal(load_model(str(folder), CPU).weights.embedding, TINY.embedding)
    shards[1].rename(shards[1].with_suffix(".part"))
    with pytest.raises(ModelUnavailable, match=shards[1].name):
        load_model(str(folder), CPU)
    shards[1].with_suffix(".part").rename(shards[1])
    (folder / "model.safetensors.index.json").unlink()
    with pytest.raises(ModelUnavailable, match="can't be loaded"):
        load_model(str(folder), CPU)


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"], ids=["empty", "a pointer"]
)
def test_a_file_that_is_no_checkpoint_is_one_sentence(folder, content) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelUnavailable, match="can't be loaded"):
        load_model(str(folder), CPU)


def test_the_token_that_ends_a_turn_ends_an_answer_though_no_file_names_it(folder) -> None:
    """As Llama 3's <|eot_id|> was at first: the model went on with the next question itself."""
    change_json(folder, "config.json", eos_token_id=256)
    change_json(folder, "generation_config.json", eos_token_id=256)
    change_json(folder, "tokenizer_config.json", eos_token="<|endoftext|>")
    assert load_model(str(folder), CPU).spec.eos_token_ids == (256, 258)


@pytest.mark.parametrize("place", ["rope_parameters", "config"])
def test_heads_that_are_rotated_in_part_are_refused_wherever_the_config_says_so(folder, place) -> None:
    config = json.loads((folder / "config.json").read_text())
    part = {"partial_rotary_factor": 0.5}
    changed = {"rope_parameters": config["rope_parameters"] | part} if place == "rope_parameters" else part
    change_json(folder, "config.json", **changed)
    with pytest.raises(ModelUnavailable, match="rotates 8 of the 16 values of a head"):
        load_model(str(folder), CPU)


@pytest.mark.parametrize("stated", [{"rope_theta": 5e5}, {"rope_theta": 5e5, "rope_scaling": None}], ids=["alone", "without scaling"])
def test_a_theta_in_its_old_place_is_read(folder, stated) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["rope_parameters"]
    (folder / "config.json").write_text(json.dumps(config | stated))
    assert load_model(str(folder), CPU).spec.rope.inv_freq[1] == pytest.approx(5e5 ** (-2 / 16))
