import json
import shutil
import socket
from pathlib import Path

import httpx
import pytest
import torch

from engine.errors import ModelUnavailable
from engine.model import bundled
from engine.model.loader import load_model, model_from_hf
from engine.model.tiny import TINY_FAMILIES, byte_tokenizer, tiny_hf_model, tiny_model
from engine.model.weights import DecoderWeights
from engine.settings import Settings
from kernels.linear import Linear

CPU = Settings(device="cpu")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """One folder per family as save_pretrained writes it; tests copy before they change one."""
    root = tmp_path_factory.mktemp("models")
    for family in TINY_FAMILIES:
        tiny_hf_model(family).save_pretrained(root / family)
        byte_tokenizer().save_pretrained(root / family)
    return {family: root / family for family in TINY_FAMILIES}


@pytest.fixture
def llama(folders, tmp_path) -> Path:
    return Path(shutil.copytree(folders["llama"], tmp_path / "llama"))


def _change_config(folder: Path, **values: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def _refusal(folder: Path | str) -> str:
    """Returns the message of the refusal, which is one sentence without the traces of a stack."""
    with pytest.raises(ModelUnavailable) as caught:
        load_model(str(folder), CPU)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and "Traceback" not in message
    return message


def _tensors(weights: DecoderWeights) -> dict[str, torch.Tensor | None]:
    fields = {f"{i}.{name}": getattr(layer, name) for i, layer in enumerate(weights.layers) for name in layer.__dataclass_fields__}
    fields |= {"embedding": weights.embedding, "final_norm": weights.final_norm, "head": weights.head}
    plain = {name: value for name, value in fields.items() if not isinstance(value, Linear)}
    products = {name: value for name, value in fields.items() if isinstance(value, Linear)}
    return plain | {f"{n}.weight": p.weight for n, p in products.items()} | {f"{n}.bias": p.bias for n, p in products.items()}


def _assert_same(left: DecoderWeights, right: DecoderWeights) -> None:
    left_tensors, right_tensors = _tensors(left), _tensors(right)
    assert left_tensors.keys() == right_tensors.keys()
    for name, tensor in left_tensors.items():
        other = right_tensors[name]
        assert (tensor is None) == (other is None), name
        assert tensor is None or torch.equal(tensor, other), name


@pytest.mark.parametrize("family", TINY_FAMILIES)
def test_a_saved_model_loads_as_it_was(folders, family: str) -> None:
    expected = tiny_model(family)
    loaded = load_model(str(folders[family]), CPU)
    _assert_same(loaded.weights, expected.weights)
    assert torch.equal(loaded.weights.head.weight, loaded.weights.embedding) == (family == "llama")
    for field in ("architecture", "num_layers", "num_heads", "num_kv_heads", "head_dim", "vocab_size", "max_context", "rope", "dtype"):
        assert getattr(loaded.spec, field) == getattr(expected.spec, field), field
    assert loaded.spec.name == str(folders[family])
    assert loaded.tokenizer.encode("héllo") == expected.tokenizer.encode("héllo")
    assert loaded.tokenizer.chat_template == expected.tokenizer.chat_template


def test_a_local_model_opens_no_connection(folders, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    load_model(str(folders["llama"]), CPU)


def test_half_precision_weights_become_float32_on_the_cpu(llama) -> None:
    tiny_hf_model("llama").to(torch.bfloat16).save_pretrained(llama)
    loaded = load_model(str(llama), CPU)
    assert loaded.dtype is torch.float32 and loaded.spec.dtype == "float32"
    expected = tiny_model("llama").weights.embedding
    assert torch.equal(loaded.weights.embedding, expected.bfloat16().float())


def test_attention_biases_are_loaded(tmp_path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**_small_sizes(), attention_bias=True))
    torch.nn.init.normal_(model.model.layers[1].self_attn.o_proj.bias)
    model.save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    layer = load_model(str(tmp_path), CPU).weights.layers[1]
    assert torch.equal(layer.out.bias, model.model.layers[1].self_attn.o_proj.bias)
    assert layer.query.bias.shape == (layer.query.weight.shape[0],)
    assert layer.keys_values.bias.shape == (layer.keys_values.weight.shape[0],)


def test_the_revision_follows_the_files(llama) -> None:
    first = load_model(str(llama), CPU).spec.revision
    assert load_model(str(llama), CPU).spec.revision == first
    tiny_hf_model("llama", seed=1).save_pretrained(llama)
    assert load_model(str(llama), CPU).spec.revision != first


def test_end_tokens_of_all_files_are_joined(llama) -> None:
    _change_config(llama, eos_token_id=[256, 258])
    (llama / "generation_config.json").write_text(json.dumps({"eos_token_id": [257, 256]}))
    assert load_model(str(llama), CPU).spec.eos_token_ids == (257, 256, 258)


@pytest.mark.parametrize(
    ("family", "values", "max_context"),
    [
        ("mistral", {"sliding_window": 64}, 64),
        ("mistral", {"sliding_window": None}, 2048),
        ("mistral", {"sliding_window": 9999}, 2048),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 2, "layer_types": None}, 64),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 64, "layer_types": None}, 2048),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 64, "layer_types": ["full_attention"] * 4}, 2048),
        ("llama", {"sliding_window": 64}, 2048),
    ],
)
def test_context_is_cut_to_a_window_only_where_it_is_used(folders, tmp_path, family: str, values: dict, max_context: int) -> None:
    folder = Path(shutil.copytree(folders[family], tmp_path / "model"))
    _change_config(folder, **values)
    assert load_model(str(folder), CPU).spec.max_context == max_context


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, ["'GPT2LMHeadModel'", "LlamaForCausalLM", "Qwen3ForCausalLM"]),
        ({"architectures": None, "model_type": "gpt2"}, ["'GPT2LMHeadModel'", "LlamaForCausalLM"]),
        ({"model_type": "never-heard-of"}, ["config.json", "never-heard-of"]),
        ({"mlp_bias": True}, ["mlp_bias"]),
        ({"hidden_act": "gelu"}, ["'gelu'", "'silu'"]),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, ["quantised", "float version"]),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, ["'dynamic'", "length of the prompt"]),
        ({"num_attention_heads": "four"}, ["config.json", "num_attention_heads"]),
        ({"intermediate_size": 130}, ["weights"]),
        ({"num_hidden_layers": 5}, ["tensors are missing", "layers.4"]),
        ({"vocab_size": 200}, ["200"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_configs_that_can_not_run_are_refused_with_the_reason(llama, values: dict, words: list[str]) -> None:
    _change_config(llama, **values)
    message = _refusal(llama)
    for word in words:
        assert word in message


def test_an_architecture_is_known_from_the_model_type_alone(llama) -> None:
    _change_config(llama, architectures=None)
    assert load_model(str(llama), CPU).spec.architecture == "LlamaForCausalLM"


def test_broken_files_are_refused(llama) -> None:
    weights = llama / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert "weights can't be loaded" in _refusal(llama)
    (llama / "tokenizer.json").write_text('{"version": "1.0", "model": {}}')
    assert "tokenizer can't be loaded" in _refusal(llama)
    (llama / "config.json").write_text("{")
    assert "JSON" in _refusal(llama)
    (llama / "config.json").write_text("[]")
    assert "JSON object" in _refusal(llama)


def test_incomplete_folders_are_refused(llama, tmp_path) -> None:
    (llama / "model.safetensors").unlink()
    assert "has no weights" in _refusal(llama)
    (llama / "model.Q4_0.gguf").touch()
    assert "GGUF" in _refusal(llama)
    (llama / "config.json").unlink()
    assert "GGUF" in _refusal(llama)
    (llama / "model.Q4_0.gguf").unlink()
    assert "no config.json" in _refusal(llama)
    assert "is a file" in _refusal(llama / "tokenizer.json")


@pytest.mark.parametrize("name", ["./nowhere", "~/nowhere/at/all", "/no/such/folder", "a/b/c"])
def test_a_missing_folder_is_not_looked_up_on_the_hub(name: str) -> None:
    assert "no model folder" in _refusal(name)


@pytest.mark.parametrize("name", ["two words", "owner/mo*del", "x" * 5000])
def test_a_bad_id_is_refused(name: str) -> None:
    assert "'owner/model'" in _refusal(name)


def test_without_a_network_an_id_is_refused_at_once() -> None:
    assert "can't be reached" in _refusal("nobody/no-such-model")


def _answer(error: type, status: int) -> Exception:
    return error("first line\nsecond line", response=httpx.Response(status, request=httpx.Request("GET", "https://hub.invalid")))


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("GatedRepoError", 403, "accept its terms"),
        ("RepositoryNotFoundError", 404, "check the spelling"),
        ("HfHubHTTPError", 500, "try again"),
    ],
)
def test_answers_of_the_hub_become_sentences(monkeypatch, kind: str, status: int, words: str) -> None:
    from huggingface_hub import errors

    def fail(*_: object, **__: object) -> str:
        raise _answer(getattr(errors, kind), status)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    assert words in _refusal("owner/model")


def test_a_dropped_connection_becomes_a_sentence(monkeypatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise httpx.ReadTimeout("the read timed out")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    assert "timed out" in _refusal("owner/model")


@pytest.fixture
def hub(folders, tmp_path, monkeypatch) -> list[list[str]]:
    """A hub with one model; the list fills with the patterns asked for."""
    snapshot = Path(shutil.copytree(folders["llama"], tmp_path / "snapshots" / COMMIT))
    asked: list[list[str]] = []

    def download(name: str, allow_patterns: list[str], **_: object) -> str:
        asked.append(allow_patterns)
        return str(snapshot)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    return asked


def test_a_hub_model_carries_its_commit(hub) -> None:
    spec = load_model("owner/model", CPU).spec
    assert (spec.name, spec.revision, spec.weights) == ("owner/model", COMMIT, f"hub owner/model@{COMMIT[:8]}")
    assert hub[0] == ["config.json"] and "model*.safetensors" in hub[1]


def test_weights_of_an_unsupported_hub_model_are_not_fetched(hub, tmp_path) -> None:
    _change_config(tmp_path / "snapshots" / COMMIT, mlp_bias=True)
    assert "mlp_bias" in _refusal("owner/model")
    assert hub == [["config.json"]]


def test_without_the_wheel_the_bundled_model_comes_from_the_hub(hub, monkeypatch) -> None:
    monkeypatch.setattr(bundled, "find_wheel", lambda: None)
    spec = load_model("bundled", CPU).spec
    assert spec.name == "SmolLM2-135M-Instruct"
    assert spec.weights.startswith("hub HuggingFaceTB/SmolLM2-135M-Instruct@")


def test_without_wheel_and_network_the_set_up_is_named(monkeypatch) -> None:
    monkeypatch.setattr(bundled, "find_wheel", lambda: None)
    assert "make setup" in _refusal("bundled")


def test_a_transformers_model_of_another_family_is_refused() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=260, n_embd=32, n_layer=1, n_head=2))
    with pytest.raises(ModelUnavailable, match="GPT2LMHeadModel"):
        model_from_hf(model, byte_tokenizer(), name="x", revision="x", weights_note="x", device=torch.device("cpu"), dtype=torch.float32)


def _small_sizes() -> dict[str, int]:
    return dict(vocab_size=260, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
