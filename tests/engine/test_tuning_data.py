"""Tuning samples stay apart from those that are measured later, and are as independent as the file allows."""

import argparse
import json

import pytest

from engine.bench.data import Sample, load_samples, load_set
from engine.errors import BadRequest
from engine.tuning.data import add_arguments, held_out, load_sets, passages, spread
from engine.types import Chunk


def sample(name: str, *texts: str) -> Sample:
    return Sample(name, "?", ("a",), tuple(Chunk(f"c{i}", "", text) for i, text in enumerate(texts)), (("c0", "a"),))


def names(samples) -> str:
    return "".join(one.sample_id for one in samples)


def arguments(data: str, *extra: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser, num=2)
    return parser.parse_args(["--data", data, *extra])


def articles(path, num_articles: int, questions: int) -> str:
    """Writes questions of which those of one article share their passages."""
    rows = []
    for article in range(num_articles):
        texts = [f"Article {article}, part {j}. " * 12 for j in range(3)]
        texts[0] += f"The mayor of {article} is M{article}."
        passages = [{"title": "t", "text": text, "is_supporting": j == 0} for j, text in enumerate(texts)]
        rows += [
            {"id": f"{article}/{i}", "question": f"Who is the mayor of {article}?", "answers": [f"M{article}"], "passages": passages}
            for i in range(questions)
        ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def test_passages_are_found_again_in_whatever_chunk_they_are_packed():
    assert passages(sample("a", "one\n\ntwo", "three")) == {"one", "two", "three"}


def test_what_shares_a_passage_with_a_skipped_sample_is_left_out():
    samples = [sample("a", "x\n\ny"), sample("b", "z"), sample("c", "y\n\nv"), sample("d", "w")]
    assert names(held_out(samples, 1)) == "bd" and names(held_out(samples, 0)) == "abcd"


def test_samples_that_share_no_passage_come_first():
    samples = [sample("a", "x"), sample("b", "x"), sample("c", "x"), sample("d", "y"), sample("e", "y")]
    assert names(spread(samples)) == "adbec"


def test_a_file_is_taken_behind_what_is_skipped_of_its_shuffled_order(tmp_path):
    data = articles(tmp_path / "a.jsonl", 8, 3)
    (found,) = load_sets(arguments(data, "--skip", "3", "--n", "4"), lambda chunk: 1)
    skipped = load_samples(data, 3, seed=0)
    assert not {p for one in skipped for p in passages(one)} & {p for one in found.samples for p in passages(one)}
    assert len({one.sample_id.split("/")[0] for one in found.samples}) == 4
    assert found.label == "a (n=4)"


def test_skipping_leaves_sets_without_a_file_alone():
    (found,) = load_sets(arguments("generated", "--skip", "7"), lambda chunk: 1)
    assert list(found.samples) == load_samples("generated", 2)


def test_each_set_may_have_its_own_numbers(tmp_path):
    data = articles(tmp_path / "a.jsonl", 8, 1)
    whole = len(load_set(data, None).samples)
    plain, mixed = load_sets(arguments(f"{data},{data}", "--skip", f"0,{whole - 2}", "--pad-to", "0,6"), lambda chunk: 1)
    assert "mixed to 6" in mixed.label and "mixed" not in plain.label
    assert all(len(b.chunks) > len(a.chunks) for a, b in zip(plain.samples, mixed.samples, strict=True))


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--skip", "1,2,3"], "--skip is '1,2,3'"),
        (["--pad-to", "-4"], "--pad-to is '-4'"),
        (["--skip", "7"], "2 samples with answer spans are asked for"),
        (["--most-tokens", "2"], "2 samples with answer spans are asked for"),
        (["--n", "0"], "at least 1"),
    ],
)
def test_a_wrong_number_is_one_sentence(tmp_path, extra, message):
    data = articles(tmp_path / "a.jsonl", 8, 1)
    with pytest.raises(BadRequest, match=message):
        load_sets(arguments(data, *extra), lambda chunk: 3)
