"""A model is data: nothing that its files say is run."""

import json
from pathlib import Path

import pytest
import torch

from engine.errors import ModelUnavailable
from engine.model.loader import load_model
from engine.model.tiny import byte_tokenizer, tiny_hf_model, tiny_model
from engine.settings import Settings

CPU = Settings(device="cpu")


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.fixture
def llama(tmp_path) -> Path:
    folder = tmp_path / "llama"
    tiny_hf_model("llama").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def test_pickled_weights_are_never_read(llama, tmp_path) -> None:
    torch.save(Trap(tmp_path / "sprung"), llama / "pytorch_model.bin")
    assert torch.equal(load_model(str(llama), CPU).weights.embedding, tiny_model("llama").weights.embedding)
    (llama / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailable, match="pickled files"):
        load_model(str(llama), CPU)
    assert not (tmp_path / "sprung").exists()


def test_code_that_a_model_brings_along_is_never_run(llama, tmp_path) -> None:
    (llama / "modeling_own.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    config = json.loads((llama / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "modeling_own.Config", "AutoModelForCausalLM": "modeling_own.Model"}
    (llama / "config.json").write_text(json.dumps(config))
    load_model(str(llama), CPU)
    assert not (tmp_path / "sprung").exists()
