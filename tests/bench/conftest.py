"""A folder with a tiny model whose context holds a whole scenario in bytes, and small data files."""

import json

import pytest

from engine.model.tiny import byte_tokenizer, tiny_hf_model


@pytest.fixture(scope="package")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    model = tiny_hf_model("llama")
    model.config.max_position_embeddings = 32_768
    model.save_pretrained(home / "model")
    byte_tokenizer().save_pretrained(home / "model")
    texts = [f"Depot {i} has the gate code {4100 + i}. " + "It stands by the road. " * 6 for i in range(4)]
    passages = [{"title": f"Depot {i}", "text": text, "is_supporting": i == 2} for i, text in enumerate(texts)]
    rows = [{"id": f"s{i}", "question": f"What is gate code {i}?", "answers": ["4102"], "passages": passages} for i in range(12)]
    (home / "data.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    asked = [{**rows[0], "id": "y", "question": "Is it open?", "answers": ["Yes"]}, rows[1]]
    long = {**rows[2], "id": "long", "passages": [{"title": "Long", "text": "word " * 8_000}]}
    (home / "odd.jsonl").write_text("\n".join([json.dumps(row) for row in (*asked, long)] + ["{broken"]))
    return home
