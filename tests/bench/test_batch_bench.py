"""The batch benchmark says how long requests take one by one and together, and that they come out the same."""

import json

import pytest
from worlds import tiny_runtime

from engine.bench.__main__ import main


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A tiny model behind the command, and three samples small enough for it."""
    monkeypatch.setattr("engine.bench.batch.load_runtime", lambda name, settings: tiny_runtime(tmp_path / "cache"))
    passages = [{"title": f"Depot {i}", "text": f"Depot {i} has the gate code {4100 + i}.", "is_supporting": i == 2} for i in range(3)]
    rows = [
        {"id": f"s{i}", "question": f"What is gate code {i}?", "answers": ["4102"], "passages": passages[: 3 - i % 2]} for i in range(3)
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def test_a_batch_is_compared_with_one_by_one(data, capsys):
    assert main(["batch", "--data", data, "--sizes", "1,3", "--repeats", "1", "--methods", "qcfuse,reuse"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    result = json.loads(lines[-1])
    assert result["bench"] == "batch" and result["provenance"]["mode"] == "live" and len(lines) == 1 + 2 + 1
    assert [row["num_requests"] for row in result["rows"]] == [1, 3]
    for row in result["rows"]:
        assert row["same_plans"] and row["max_abs_diff"] < 1e-4 and row["num_rows"] < row["num_tokens"]
        assert row["together_s"]["min"] <= row["together_s"]["median"] and row["ratio"] > 0


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--sizes", "2,x", "whole numbers"),
        ("--sizes", "0", "at least 1"),
        ("--sizes", "9", "asked for"),
        ("--ratio", "1.5", "1.5"),
        ("--repeats", "0", "at least 1"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(data, capsys, option, value, words):
    assert main(["batch", "--data", data, "--sizes", "1", option, value]) == 2
    errors = capsys.readouterr().err.strip()
    assert words in errors and len(errors.splitlines()) == 1
