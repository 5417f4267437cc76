"""Primers: candidates are neutral and of like length, trials are paired, and the choice is filed with its evidence."""

import json

import msgspec
import pytest
from worlds import lighthouse, tiny_runtime

from engine.bench.data import Sample
from engine.fusion.reuse import DirectReuse
from engine.model import choose_primer
from engine.model.bundled import MODEL_NAME
from engine.model.choose_primer import write_choice
from engine.model.primer import PRIMER_DIR, Primer, PrimerChoice, find_primer, primers
from engine.tuning.data import TuningSet
from engine.tuning.divergence import full_reference, kl_to_full
from engine.tuning.primer_trial import Cell, run_trial

SHORT = (Primer("tide", "Tide: The sea rises.\n\n"), Primer("oak", "Oak: A tree.\n\n"))


@pytest.mark.parametrize("primer", primers(), ids=lambda primer: primer.name)
def test_a_candidate_is_titled_paragraphs_that_end_as_a_chunk_does(primer):
    assert primer.text.endswith("\n\n") and not primer.text.endswith("\n\n\n") and primer.text.isascii()
    paragraphs = primer.text.strip().split("\n\n")
    assert all(0 < paragraph.find(": ") < 40 for paragraph in paragraphs)
    assert 120 <= len(primer.text.split()) <= 200


def choice(path) -> PrimerChoice:
    return msgspec.json.decode(path.read_bytes(), type=PrimerChoice)


def test_the_choice_that_is_shipped_names_a_candidate_and_its_evidence():
    shipped = choice(PRIMER_DIR / "choice.json")
    assert find_primer(MODEL_NAME).name == shipped.chosen and "Measured" in shipped.note and "n=" in shipped.note


def test_a_trial_has_every_primer_in_both_contexts_on_the_same_samples(tmp_path):
    runtime, request = tiny_runtime(tmp_path), lighthouse()
    sample = Sample("a", request.question, ("Vell",), request.chunks, ())
    trial = run_trial(runtime, [TuningSet("x (n=2)", (sample, sample)), TuningSet("y (n=1)", (sample,))], SHORT, 0.2)
    assert len(trial.divergences) == 2 * (1 + 2 * len(SHORT) + 1)
    assert all([len(values) for values in sets] == [2, 1] for sets in trial.divergences.values())
    base = Cell("reuse", "system", "")
    prepared = runtime.prepare(request)
    expected = kl_to_full(runtime, DirectReuse(), prepared.placed["system"], full_reference(runtime, prepared.prompt, "Vell"))
    assert trial.divergences[base][0][0] == pytest.approx(expected)
    assert trial.divergences[Cell("reuse", "primed", "oak")][0][0] != trial.divergences[Cell("reuse", "primed", "tide")][0][0]
    assert [values.tolist() for values in trial.differences(base, base)] == [[0.0, 0.0], [0.0]]


def test_the_mean_of_a_single_primer_is_that_primer(tmp_path):
    request = lighthouse()
    sample = Sample("a", request.question, ("Vell",), request.chunks, ())
    trial = run_trial(tiny_runtime(tmp_path), [TuningSet("x (n=1)", (sample,))], SHORT[:1], 0.2)
    for method in ("reuse", "qcfuse@0.2"):
        mean, alone = (trial.divergences[Cell(method, *rest)][0][0] for rest in (("primed-mean", "all"), ("primed", "tide")))
        assert mean == alone


def test_a_choice_for_another_model_leaves_the_general_one(tmp_path):
    path = tmp_path / "choice.json"
    path.write_bytes(msgspec.json.encode(PrimerChoice("oak", "First.")))
    write_choice(path, "Qwen/Qwen3-8B", "tide", "Second.")
    assert choice(path) == PrimerChoice("oak", "First. Qwen/Qwen3-8B: Second.", {"Qwen/Qwen3-8B": "tide"})
    write_choice(path, MODEL_NAME, "tide", "Third.")
    assert choice(path) == PrimerChoice("tide", "Third.", {"Qwen/Qwen3-8B": "tide"})


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Returns the arguments of a call on two short samples with a tiny model."""
    monkeypatch.setattr(choose_primer, "load_runtime", lambda name, settings: tiny_runtime(tmp_path))
    monkeypatch.setattr(choose_primer, "primers", lambda: SHORT)
    passages = [{"text": "The key is K1. " + "Pier is closed. " * 60, "is_supporting": True}, {"text": "No ferry runs. " * 45}]
    rows = [{"id": str(i), "question": f"What is the key {i}?", "answers": ["K1"], "passages": passages} for i in range(2)]
    data = tmp_path / "a.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "choice.json").write_bytes(msgspec.json.encode(PrimerChoice("oak", "Before.")))
    return ["--data", str(data), "--n", "2"]


def test_the_command_names_the_best_and_files_it_only_when_asked(command, tmp_path, capsys):
    path = tmp_path / "choice.json"
    assert choose_primer.main(command, tmp_path) == 0 and choice(path).chosen == "oak"
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    rows = {row["primer"]: row["kl"] for row in last["rows"] if (row["method"], row["context"]) == ("qcfuse@0.1", "primed")}
    assert last["chosen"] == min(rows, key=rows.__getitem__) and set(rows) == {"tide", "oak"}
    assert choose_primer.main([*command, "--write"], tmp_path) == 0
    assert choice(path).by_model == {"tiny-llama": last["chosen"]} and "a (n=2)" in choice(path).note


@pytest.mark.parametrize("extra", [["--primers", "elm"], ["--ratio", "1.5"], ["--skip", "x"]])
def test_a_wrong_call_is_one_sentence(command, capsys, extra):
    assert choose_primer.main([*command, *extra]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
