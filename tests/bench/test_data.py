"""Samples: packing, spans, seeds, and one sentence for what is wrong with a file."""

import json

import pytest

from engine.bench.data import generated_samples, load_samples
from engine.errors import BadRequest


def row(**change):
    texts = [f"word{i} " * 50 + ("The key is Zephyr." if i == 3 else "") for i in range(6)]
    passages = [{"title": f"T{i}", "text": text, "is_supporting": i == 3} for i, text in enumerate(texts)]
    return {"id": "a", "question": "What is the key?", "answers": ["Zephyr"], "passages": passages} | change


def write(path, *rows):
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
    return str(path)


def test_short_passages_are_packed_and_spans_follow(tmp_path):
    (sample,) = load_samples(write(tmp_path / "d.jsonl", row()), 1)
    assert [len(chunk.text.split()) for chunk in sample.chunks] == [150, 154]
    assert sample.supporting == (("p02", "Zephyr"),)


@pytest.mark.parametrize("bad", ["{", "{}", json.dumps(row(passages=[{"title": "x", "text": " "}]))])
def test_a_bad_line_is_named(tmp_path, bad):
    with pytest.raises(BadRequest, match=r"d\.jsonl, line 2"):
        load_samples(write(tmp_path / "d.jsonl", row(), bad), 1)


def test_missing_files_and_too_many_samples_are_one_sentence(tmp_path):
    with pytest.raises(BadRequest, match="no data file"):
        load_samples(str(tmp_path / "none.jsonl"), 1)
    with pytest.raises(BadRequest, match="has 1"):
        load_samples(write(tmp_path / "d.jsonl", row()), 2)
    with pytest.raises(BadRequest, match="at least 1"):
        load_samples("scenarios", 0)


def test_scenarios_are_taken_in_turn():
    samples = load_samples("scenarios", 16)
    assert len({sample.scenario for sample in samples[:8]}) == 8


def test_generated_samples_hold_their_answer_once():
    for sample in generated_samples(5, seed=3):
        (chunk_id, span), answer = sample.supporting[0], sample.answers[0]
        text = next(chunk.text for chunk in sample.chunks if chunk.chunk_id == chunk_id)
        assert span in text and answer in span and answer not in sample.question
    assert generated_samples(2, seed=3) == generated_samples(5, seed=3)[:2]
