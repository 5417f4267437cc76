"""Samples: packing, spans, seeds, and one sentence for what is wrong with a file."""

import json

import pytest

from engine.bench.data import Packing, load_samples, load_set
from engine.bench.data.check import data_report
from engine.bench.data.generated import generated_samples
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


def test_passages_can_be_packed_by_tokens(tmp_path):
    path = write(tmp_path / "d.jsonl", row())
    packing = Packing.of_tokens(210, lambda text: 2 * len(text.split()))
    (sample,) = load_set(path, 1, packing=packing).samples
    assert [len(chunk.text.split()) for chunk in sample.chunks] == [100, 104, 100]
    (whole,) = load_set(path, 1, packing=Packing.of_tokens(16, packing.size)).samples
    assert len(whole.chunks) == 6, "a passage longer than a chunk stays whole"
    with pytest.raises(BadRequest, match="at least 16"):
        Packing.of_tokens(0, len)


BAD = {
    "broken": "{",
    "empty": "{}",
    "blank passage": json.dumps(row(passages=[{"title": "x", "text": " "}])),
    "no passages": json.dumps(row(passages=[])),
    "no question": json.dumps(row(question="  ")),
    "blank answer": json.dumps(row(answers=[""])),
    "answer of another type": json.dumps(row(answers="Zephyr")),
    "text of another type": json.dumps(row(passages=[{"title": "x", "text": 3}])),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_line_is_named_and_can_be_left_out(tmp_path, bad):
    path = write(tmp_path / "d.jsonl", row(), "", bad, row(id="b"))
    with pytest.raises(BadRequest, match=r"d\.jsonl, line 3: not a sample \(.+\); mend or remove the line\."):
        load_samples(path, 1)
    loaded = load_set(path, None, skip_bad=True)
    assert sorted(sample.sample_id for sample in loaded.samples) == ["a", "b"]
    assert len(loaded.bad_lines) == 1 and "line 3" in loaded.bad_lines[0]


def test_bytes_that_are_no_text_are_a_bad_line(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\r\n" + b'{"id": "\xff"}\n')
    loaded = load_set(str(path), None, skip_bad=True)
    assert len(loaded.samples) == 1 and "line 2" in loaded.bad_lines[0]


def test_missing_files_and_too_many_samples_are_one_sentence(tmp_path):
    with pytest.raises(BadRequest, match="no data file"):
        load_samples(str(tmp_path / "none.jsonl"), 1)
    with pytest.raises(BadRequest, match="has 1"):
        load_samples(write(tmp_path / "d.jsonl", row()), 2)
    with pytest.raises(BadRequest, match="has 0"):
        load_set(write(tmp_path / "e.jsonl", "{"), None, skip_bad=True)
    with pytest.raises(BadRequest, match="at least 1"):
        load_samples("scenarios", 0)


def test_all_samples_of_a_set_can_be_had(tmp_path):
    assert len(load_set(write(tmp_path / "d.jsonl", row(), row(id="b")), None).samples) == 2
    assert len(load_set("ruler-mv", None).samples) == 20
    assert load_set("scenarios", None).samples == load_samples("scenarios", len(load_set("scenarios", None).samples))


def test_scenarios_are_taken_in_turn():
    samples = load_samples("scenarios", 16)
    assert len({sample.scenario for sample in samples[:8]}) == 8


def test_generated_samples_hold_their_answer_once():
    for sample in generated_samples(5, seed=3):
        (chunk_id, span), answer = sample.supporting[0], sample.answers[0]
        text = next(chunk.text for chunk in sample.chunks if chunk.chunk_id == chunk_id)
        assert span in text and answer in span and answer not in sample.question
    assert generated_samples(2, seed=3) == generated_samples(5, seed=3)[:2]


def test_the_report_names_what_is_odd(tmp_path):
    rows = (row(), row(id="b", question="what is  the key?"), row(id="c", question="Is it so?", answers=["Yes."]))
    more = (row(id="a", question="And this?", answers=["Boreas"]), row(id="e", question="Nothing?", answers=[]))
    loaded = load_set(write(tmp_path / "d.jsonl", *rows, *more, "{"), None, skip_bad=True)
    report = data_report(loaded.samples, loaded.bad_lines, lambda sample: "too long" if sample.sample_id == "e" else None)
    assert (report["n"], report["duplicate_ids"], report["duplicate_questions"]) == (5, ["a"], ["what is the key?"])
    assert (report["yes_no"], report["without_gold"], report["without_answer"]) == (["c"], ["a"], ["e"])
    assert report["over_context"] == ["e"] and len(report["bad_lines"]) == 1
    assert report["chunks"] == {"median": 2, "min": 2, "max": 2} and report["words_per_chunk"]["max"] == 154
    assert data_report(loaded.samples)["over_context"] is None


def test_skipped_samples_are_the_first_of_the_same_order():
    every = [sample.sample_id for sample in load_samples("scenarios", 9)]
    assert [sample.sample_id for sample in load_set("scenarios", 5, skip=4).samples] == every[4:]
    with pytest.raises(BadRequest, match="-1 samples"):
        load_set("scenarios", 5, skip=-1)
