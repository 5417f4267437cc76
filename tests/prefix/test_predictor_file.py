"""The session predictor on the disk: kept, found, refused where it is damaged, and used where it is better than the rule."""

import logging

import pytest
import torch
from predictor_samples import CPU, made_predictor
from worlds import tiny_runtime

from engine.errors import BadRequest
from engine.prefix.predictor import FOLDER, find_better, find_predictor, load_predictor, save_predictor


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    return tiny_runtime(tmp_path_factory.mktemp("predictor"))


def test_a_predictor_is_kept_and_found_again(runtime, tmp_path):
    spec, made = runtime.model.spec, made_predictor(runtime.model.spec.hidden_size)
    save_predictor(made, tmp_path / FOLDER)
    found = find_predictor(spec, CPU, tmp_path)
    hidden = torch.randn(1, spec.hidden_size, generator=torch.Generator().manual_seed(2))
    assert found.probability(hidden) == made.probability(hidden) and 0 < made.probability(hidden) < 1
    assert found.card == made.card and "accuracy 80.0%, MCC 0.50 on 20 held-out prompts" in found.described


@pytest.mark.parametrize("damage", ["cut", "sizes", "card", "bit"])
def test_a_predictor_that_does_not_fit_is_passed_over(runtime, tmp_path, caplog, damage):
    spec = runtime.model.spec
    path = save_predictor(made_predictor(spec.hidden_size + (damage == "sizes")), tmp_path / FOLDER)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    if damage == "card":
        path.write_bytes(path.read_bytes().replace(b"baseline_accuracy", b"baseline_accurazy"))
    if damage == "bit":
        data = bytearray(path.read_bytes())
        data[-2] ^= 1
        path.write_bytes(data)
    with pytest.raises(BadRequest) as error:
        load_predictor(path, spec, CPU)
    told = str(error.value)
    assert told.startswith(f"The session predictor '{path.name}' cannot be used (") and "\n" not in told
    assert told.endswith("); train it anew with python -m engine.prefix.train_predictor.")
    with caplog.at_level(logging.WARNING):
        assert find_predictor(spec, CPU, tmp_path) is None
    assert "passed over" in caplog.text


def test_another_models_predictor_is_not_taken(runtime, tmp_path):
    path = save_predictor(made_predictor(runtime.model.spec.hidden_size, name="other"), tmp_path / FOLDER)
    path.rename(path.with_stem(runtime.model.spec.name))
    assert find_predictor(runtime.model.spec, CPU, tmp_path) is None


@pytest.mark.parametrize(("high", "is_used"), [(-0.01, True), (0.0, False), (0.05, False)])
def test_one_that_is_not_better_than_the_rule_is_used_by_name_only(runtime, tmp_path, high, is_used):
    spec = runtime.model.spec
    save_predictor(made_predictor(spec.hidden_size, intervals={"brier_minus_rule": (-0.2, high)}), tmp_path / FOLDER)
    assert find_predictor(spec, CPU, tmp_path) is not None
    assert (find_better(spec, CPU, tmp_path) is not None) == is_used
