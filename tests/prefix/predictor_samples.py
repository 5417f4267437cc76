"""A predictor of made-up worth."""

import torch

from engine.prefix.predictor import LearnedPredictor, PredictorCard, SessionMLP

CPU = torch.device("cpu")


def card_of(name="tiny-llama", **changes):
    made = dict(
        model=name, revision="r", data="made up", licences="none", command="none", num_conversations=(6, 2, 2), num_samples=(60, 20, 20),
        prior=0.6, accuracy=0.8, f1=0.8, mcc=0.5, calibration_error=0.1, brier=0.15, baseline_accuracy=0.6, baseline_brier=0.24,
        rule_accuracy=0.7, rule_mcc=0.3, rule_calibration_error=0.1, rule_brier=0.2, intervals={"brier_minus_rule": (-0.1, 0.0)},
        predictions_per_s=1000.0, num_epochs=3, seed=0, created="today",
    )  # fmt: skip
    return PredictorCard(**made | changes)


def made_predictor(hidden_size, **changes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        mlp = SessionMLP(hidden_size)
    mlp.standardise_by(torch.randn(50, hidden_size, generator=torch.Generator().manual_seed(1)) * 7 + 2)
    return LearnedPredictor(mlp, card_of(**changes), CPU)
