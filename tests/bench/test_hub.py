"""Sets of the hub: rows of each schema by hand and through the library's own loader, and one sentence offline."""

import json

import pytest

from engine.bench.data import Packing, load_samples
from engine.bench.data.hub import HUB_SETS, HubSet, musique_row, read_hub, titled_row
from engine.errors import BadRequest

MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Arle", "paragraph_text": "Arle is a hill.", "is_supporting": False},
        {"idx": 1, "title": "Borun", "paragraph_text": "Borun was led by Ines Quill.", "is_supporting": True},
    ],
    "question": "Who led the town?",
    "question_decomposition": [{"id": 1, "question": "town", "answer": "Borun", "paragraph_support_idx": 1}],
    "answer": "Ines Quill",
    "answer_aliases": ["Quill", "", "Ines Quill"],
    "answerable": True,
}
TITLED = {
    "id": "5a7",
    "question": "Which river is longer?",
    "answer": "the Osk",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": {"title": ["Osk", "Osk"], "sent_id": [0, 1]},
    "context": {"title": ["Osk", "Tarn"], "sentences": [["It is the Osk.", " It is long. "], ["The Tarn is short."]]},
}


def test_a_row_of_musique():
    row = musique_row(MUSIQUE)
    assert (row.id, row.question, row.answers) == ("2hop__1_2", "Who led the town?", ("Ines Quill", "Quill"))
    assert [(p.title, p.is_supporting) for p in row.passages] == [("Arle", False), ("Borun", True)]
    assert row.passages[1].text == "Borun was led by Ines Quill."
    assert musique_row({**MUSIQUE, "answerable": False}) is None


def test_a_row_of_musique_as_columns():
    columns = {name: [p[name] for p in MUSIQUE["paragraphs"]] for name in MUSIQUE["paragraphs"][0]}
    assert musique_row({**MUSIQUE, "paragraphs": columns}) == musique_row(MUSIQUE)


@pytest.mark.parametrize("as_records", [False, True])
def test_a_row_of_hotpotqa_and_2wiki(as_records):
    row = dict(TITLED)
    if as_records:
        row["supporting_facts"] = [{"title": "Osk", "sent_id": 0}]
        row["context"] = [
            {"title": "Osk", "sentences": ["It is the Osk.", "It is long."]},
            {"title": "Tarn", "sentences": ["The Tarn is short."]},
        ]
        row["_id"] = row.pop("id")
    made = titled_row(row)
    assert (made.id, made.question, made.answers) == ("5a7", "Which river is longer?", ("the Osk",))
    assert [(p.title, p.text, p.is_supporting) for p in made.passages] == [
        ("Osk", "It is the Osk. It is long.", True),
        ("Tarn", "The Tarn is short.", False),
    ]


@pytest.fixture
def library_cache(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub-cache")


@pytest.mark.parametrize(
    ("row", "to_row", "span"), [(MUSIQUE, musique_row, "Quill"), (TITLED, titled_row, "the Osk")], ids=["musique", "titled"]
)
def test_rows_come_through_the_library_as_they_are_mapped(tmp_path, library_cache, row, to_row, span):
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [{**row, "id": f"{row['id']}-{i}"} for i in range(5)]
    (folder / "validation.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = HubSet(str(folder), None, to_row)
    samples = list(read_hub("local", source, Packing(), seed=1))
    assert sorted(sample.sample_id for sample in samples) == [row["id"] for row in rows]
    assert samples == list(read_hub("local", source, Packing(), seed=1))
    assert [s.sample_id for s in samples] != [s.sample_id for s in read_hub("local", source, Packing(), seed=2)]
    assert len(samples[0].chunks) == 1 and ("p01", span) in samples[0].supporting


def test_a_set_of_another_layout_is_one_sentence(tmp_path, library_cache):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "validation.jsonl").write_text(json.dumps({"id": "a", "query": "Why?"}))
    with pytest.raises(BadRequest, match=r"Row 0 of .* use a JSONL file instead"):
        list(read_hub("local", HubSet(str(folder), None, musique_row), Packing(), seed=0))


@pytest.mark.parametrize("name", HUB_SETS)
def test_offline_a_set_that_was_never_fetched_is_one_sentence(name, library_cache):
    with pytest.raises(BadRequest, match=r"with a network .* JSONL file"):
        load_samples(name, 1)
