"""Calibration tables: shipped ones load and fit only their model, measured ones win, and the command measures a tiny model."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from worlds import tiny_runtime

from engine.errors import BadRequest
from engine.model import calibrate
from engine.model.calibration import SHIPPED_DIR, Calibration, calibration_path, find_calibration
from engine.model.tiny import tiny_model
from engine.tuning.layer_choice import candidate_layers, measured_layers
from engine.tuning.pooled import paired, pooled_error, pooled_mean

SHIPPED = sorted(SHIPPED_DIR.glob("*.json"))


@pytest.fixture(scope="module")
def spec():
    return tiny_model().spec


def decoded(path) -> Calibration:
    return msgspec.json.decode(path.read_bytes(), type=Calibration)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_table_has_its_evidence_or_its_source(path):
    table = decoded(path)
    assert table.note and table.created and table.num_layers > max(table.layers) and len(set(table.layers)) == len(table.layers) >= 3
    assert calibration_path(SHIPPED_DIR, table.model) == path
    if table.origin == "paper":
        assert "arXiv 2606.05875" in table.note and not table.scores and not table.num_samples
        return
    measured = {score.layer: score for score in table.scores}
    assert table.origin == "measured" and table.num_samples >= 40
    assert all(measured[layer].kl is not None for layer in table.layers)


def test_no_name_is_claimed_by_two_tables():
    names = [name.casefold() for path in SHIPPED for name in (decoded(path).model, *decoded(path).aliases)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "num_layers", "first"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 32, 14),
        ("meta-llama/Meta-Llama-3.1-8B", 32, 14),
        ("unsloth/llama-3.1-8b-instruct", 32, 14),
        ("Qwen/Qwen3-8B", 36, 20),
        ("/models/Qwen3-14B/", 40, 24),
        ("/hub/models--Qwen--Qwen3-32B/snapshots/0123abc", 64, 48),
        ("mistralai/Mistral-7B-v0.3", 32, 16),
        ("mistralai/Mistral-7B-Instruct-v0.3", 32, 16),
    ],
)
def test_a_published_table_is_found_by_any_spelling_of_its_model(spec, tmp_path, name, num_layers, first):
    found = find_calibration(replace(spec, name=name, num_layers=num_layers), tmp_path)
    assert found.origin == "paper" and found.layers[0] == first and len(found.layers) >= 3


@pytest.mark.parametrize(
    ("name", "num_layers"),
    [
        ("Qwen/Qwen3-8B", 35),
        ("Qwen/Qwen3-8B-Base", 36),
        ("Qwen/Qwen3-80B", 36),
        ("Qwen/Qwen3-0.6B", 28),
        ("meta-llama/Llama-3.1-70B-Instruct", 80),
        ("meta-llama/Llama-3.1-8B-Instruct-4bit", 32),
        ("meta-llama/Llama-3-8B-Instruct", 32),
        ("mistralai/Mistral-7B-v0.1", 32),
        ("Qwen3-8B/checkpoint-500", 36),
    ],
)
def test_a_name_that_merely_starts_alike_gets_a_guess(spec, tmp_path, name, num_layers):
    found = find_calibration(replace(spec, name=name, num_layers=num_layers), tmp_path)
    assert found.origin == "guess" and len(found.layers) == 1


@pytest.mark.parametrize("name", ["SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"])
def test_there_is_a_measured_one_for_the_bundled_model(spec, tmp_path, name):
    bundled = replace(spec, name=name, num_layers=30)
    assert find_calibration(bundled, tmp_path).origin == "measured"
    assert find_calibration(replace(bundled, num_layers=29), tmp_path).origin == "guess"


def test_a_measured_table_wins_and_a_broken_one_is_passed_over(spec, tmp_path):
    guess = find_calibration(spec, tmp_path)
    assert guess.origin == "guess" and guess.layers == (3,) and "engine.model.calibrate" in guess.note
    path = calibration_path(tmp_path / "calibration", spec.name)
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(Calibration(spec.name, (2, 1), "measured", "here")))
    assert find_calibration(spec, tmp_path).layers == (2, 1)
    for other in (Calibration(spec.name, (99,), "measured", "deeper"), Calibration(spec.name, (2,), "measured", "", num_layers=7)):
        path.write_bytes(msgspec.json.encode(other))
        assert find_calibration(spec, tmp_path).origin == "guess"
    path.write_bytes(b"{")
    assert find_calibration(spec, tmp_path).origin == "guess"


def test_sets_of_different_size_weigh_the_same():
    sets = [np.array([[0.0], [2.0]]), np.array([[5.0]] * 8)]
    assert pooled_mean(sets) == pytest.approx(3.0) and pooled_error(sets) == pytest.approx(0.5)
    found = paired([values[:, 0] for values in sets])
    assert found.mean == pytest.approx(3.0) and found.low < found.mean < found.high
    assert found == paired([values[:, 0] for values in sets])


def test_layers_that_tie_in_recall_are_told_apart_by_kl():
    # Layer 4 is best by a hair, 5 ties with it, 6 is clearly worse, 7 hopeless.
    recall = [np.array([[0.5, 0.5, 0.2, 0.0], [0.6, 0.5, 0.3, 0.0], [0.5, 0.55, 0.2, 0.1]])]
    found = candidate_layers(recall, (4, 5, 6, 7))
    assert found.tied == (4, 5) and found.others == (6,)
    assert found.chosen({4: 0.3, 5: 0.2, 6: 0.1, 7: 0.0}) == (5, 4, 6)
    assert measured_layers("tied", found, (4, 5, 6, 7)) == (4, 5, 6)
    assert measured_layers("all", found, (4, 5, 6, 7)) == (4, 5, 6, 7)
    assert measured_layers("every:4", found, (4, 5, 6, 7)) == (4, 5, 6, 7)
    assert measured_layers("best:2", found, (4, 5, 6, 7)) == (4, 5, 6)
    assert measured_layers("best:4", found, (4, 5, 6, 7)) == (4, 5, 6, 7)


@pytest.mark.parametrize("rule", ["most", "every", "every:0", "every:x", "all:2", "best", "best:0"])
def test_an_unknown_kl_rule_is_one_sentence(rule):
    with pytest.raises(BadRequest, match="--kl is"):
        measured_layers(rule, candidate_layers([np.ones((2, 1))], (1,)), (1,))


def write_samples(path, num: int) -> str:
    """Writes short samples whose answers stand in their second passage."""
    rows = []
    for i in range(num):
        texts = [f"Note {i}.{j}: the boat of pier {j} is late. " * 2 for j in range(3)]
        texts[1] += f"The key is K{i}{i}."
        passages = [{"title": f"T{j}", "text": text, "is_supporting": j == 1} for j, text in enumerate(texts)]
        rows.append({"id": str(i), "question": "What is the key?", "answers": [f"K{i}{i}"], "passages": passages})
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def test_the_command_files_a_table_that_is_used_from_then_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FUSESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibrate, "load_runtime", lambda name, settings: tiny_runtime(tmp_path))
    data = ",".join(write_samples(tmp_path / f"{name}.jsonl", 4) for name in "ab")
    assert calibrate.main(["--data", data, "--n", "2", "--skip", "0,1", "--ratio", "0.2"]) == 0
    table = find_calibration(tiny_model().spec, tmp_path)
    assert table.origin == "measured" and table.num_samples == 4 and len(table.layers) == 3 and table.num_layers == 4
    assert [score.layer for score in table.scores] == [1, 2, 3] and all(score.kl is not None for score in table.scores)
    assert "a (n=2), b (n=2)" in table.note and "KL alone:" in table.note
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["layers"] == list(table.layers) and len(last["rows"]) == 3 and len(last["sets"]) == 2


def test_a_wrong_call_is_one_sentence_and_nothing_is_filed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FUSESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibrate, "load_runtime", lambda name, settings: tiny_runtime(tmp_path))
    data = write_samples(tmp_path / "a.jsonl", 4)
    for extra in (["--kl", "some"], ["--skip", "1,2"], ["--n", "4", "--skip", "1"], ["--n", "0"], ["--most-tokens", "5"]):
        assert calibrate.main(["--data", data, "--n", "2", *extra]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "calibration").exists()
