"""The logistic rule: it fits what can be told, predicts from each prompt alone, and is filed with a card that is true."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from engine.cache_types import ReplayRequest
from engine.errors import BadRequest
from engine.prefix import train_rule
from engine.prefix.lab import ReplayLab, run_replay
from engine.prefix.predictor import PriorPredictor
from engine.prefix.predictor_rule import FEATURES, RIDGE, features, fit, load_rule
from engine.prefix.predictor_scores import baseline_accuracy, calibration_error, scores
from engine.prefix.workloads.generate import generate


def drawn(num=3_000, seed=0):
    """Returns features of made-up requests, and outcomes that follow a logistic law of them."""
    rng = np.random.default_rng(seed)
    values = features(rng.integers(0, 6, num), rng.lognormal(5.0, 1.0, num), rng.random(num) < 0.3)
    logits = 2.0 * values[:, 1] - 0.8 * (values[:, 2] - 5.0) + values[:, 3]
    return values, rng.random(num) < 1.0 / (1.0 + np.exp(-logits)), logits


def test_the_fit_is_the_penalised_maximum_of_likelihood():
    values, goes_on, _ = drawn(400)
    found = fit(values, goes_on)
    x = np.concatenate([(values - found.mean) / found.deviation, np.ones((len(values), 1))], 1)

    def loss(beta):
        return float(np.logaddexp(0.0, np.where(goes_on, -1.0, 1.0) * (x @ beta)).sum() + 0.5 * RIDGE * (beta[:-1] ** 2).sum())

    best = minimize(loss, np.zeros(x.shape[1]), tol=1e-10)
    assert np.append(found.weights, found.bias) == pytest.approx(best.x, abs=2e-3)


def test_probabilities_are_those_of_the_law_they_were_drawn_from():
    values, goes_on, logits = drawn()
    assert np.abs(fit(values, goes_on).probabilities(values) - 1.0 / (1.0 + np.exp(-logits))).mean() < 0.02


@pytest.mark.parametrize(
    ("truth", "said", "error"),
    [([1, 0, 1, 0], [0.5] * 4, 0.0), ([1, 1], [0.9, 0.9], 0.1), ([0, 1, 1, 1], [0.05, 0.95, 0.95, 0.95], 0.05), ([0, 0], [1.0, 1.0], 1.0)],
)
def test_the_calibration_error_is_what_bins_are_off_by(truth, said, error):
    assert calibration_error(truth, said) == pytest.approx(error)


def test_what_a_request_is_told_does_not_depend_on_later_ones():
    workload, rule = generate("tool_use", 3), load_rule()
    said = rule.predicted(workload).follow_up
    assert ((said > 0) & (said < 1)).all() and said.std() > 0.01
    turned = rule.predicted(replace(workload, turn=np.where(np.arange(workload.num_requests) < 100, workload.turn, 0).astype(np.int32)))
    assert turned.follow_up[:100].tolist() == said[:100].tolist()


def test_the_shipped_rule_beats_the_more_frequent_class_on_loads_it_never_saw():
    rule = load_rule()
    assert rule.features == FEATURES and rule.accuracy > rule.baseline_accuracy and rule.calibration_error < 0.1
    predicted = rule.predicted(generate("mix", 0))
    assert predicted.share_right > baseline_accuracy(predicted.goes_on) + 0.03
    assert predicted.share_right == scores(predicted.goes_on, predicted.follow_up >= 0.5).accuracy


def test_a_replay_can_be_told_by_the_rule_and_says_how_often_it_was_right():
    run = run_replay(ReplayRequest("tool_use", "saecache", 0.1, accuracy=None, by_rule=True))
    lab = ReplayLab(generate("tool_use", 0), rule=load_rule())
    assert run.predictor == lab.predictor and f"right on {lab.workload.share_right:.1%} of this load's requests" in run.predictor
    assert lab.workload.goes_on.mean() not in (0.0, 1.0)


def test_the_command_files_a_rule_with_a_true_card(tmp_path, capsys):
    path = tmp_path / "new" / "rule.json"
    assert train_rule.main(["--data", "tool_use", "--seeds", "2", "--out", str(path), "--json"]) == 0
    card, rule = json.loads(capsys.readouterr().out)["card"], load_rule(path)
    loads = [generate("tool_use", train_rule.FIRST_SEED + seed) for seed in (0, 1)]
    held_out = [load.session % train_rule.TEST_EVERY == 0 for load in loads]
    assert card["num_requests"][1] == sum(int(mask.sum()) for mask in held_out)
    right = sum(
        int(((rule.predicted(load).follow_up >= 0.5) == load.goes_on)[mask].sum()) for load, mask in zip(loads, held_out, strict=True)
    )
    assert rule.accuracy == pytest.approx(right / card["num_requests"][1], abs=1e-6) and "tool_use (2 seeds" in rule.described


def test_a_wrong_call_or_file_is_one_sentence(tmp_path, capsys):
    assert train_rule.main(["--seeds", "0"]) == 2 and train_rule.main(["--data", "no such load"]) == 2
    assert "neither a log nor a generated workload" in capsys.readouterr().err
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(BadRequest, match=r"'a.json' cannot be read .* fit one with python -m engine.prefix.train_rule"):
        load_rule(tmp_path / "a.json")
    with pytest.raises(BadRequest, match="of one class"):
        fit(drawn(10)[0], np.ones(10, bool))


def test_a_constant_says_so():
    prior = PriorPredictor(0.74, "a log of last week")
    assert prior.probability(torch.zeros(1, 3)) == 0.74 and prior.described == "a constant: 74% of sessions go on (a log of last week)"
