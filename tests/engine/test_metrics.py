"""Metrics against values worked out by hand."""

import math

import numpy as np
import pytest
import torch

from engine import metrics


def test_rouge_l_is_the_best_over_golds_and_reads_any_script():
    assert metrics.rouge_l("the ship Corvenna", ["Corvenna"]) == pytest.approx(0.5)
    assert metrics.rouge_l("the ship", ["Corvenna", "the ship"]) == 1.0
    assert metrics.rouge_l("маяк", ["маяк"]) == 1.0
    assert metrics.rouge_l("x", []) is None


def test_f1_ignores_articles_case_and_punctuation():
    assert metrics.token_f1("The Corvenna.", ["corvenna"]) == 1.0
    assert metrics.token_f1("red lamp", ["lamp oil"]) == pytest.approx(0.5)
    assert metrics.token_f1("", ["lamp"]) == 0.0


def test_exact_match_is_of_the_whole_normalised_answer():
    assert metrics.exact_match("The  Corvenna.", ["the lamp", "corvenna"]) is True
    assert metrics.exact_match("the ship Corvenna", ["Corvenna"]) is False
    assert metrics.exact_match("", ["Corvenna"]) is False
    assert metrics.exact_match("x", []) is None


def test_a_gold_answer_may_stand_anywhere_in_the_answer():
    assert metrics.contains_gold("It was the CORVENNA, a ketch.", ["Corvenna"]) is True
    assert metrics.contains_gold("It was the Skellan.", ["Corvenna"]) is False
    assert metrics.contains_gold("x", []) is None


def test_nll_and_kl_equal_their_formulas():
    p, q = torch.tensor([[0.7, 0.2, 0.1]]), torch.tensor([[0.5, 0.25, 0.25]])
    assert metrics.mean_nll(p.log(), np.array([1])) == pytest.approx(-math.log(0.2), rel=1e-6)
    expected = sum(float(a * (a / b).log()) for a, b in zip(p[0], q[0], strict=True))
    assert metrics.mean_kl(p.log(), q.log()) == pytest.approx(expected, rel=1e-5)
    assert metrics.mean_kl(p.log(), p.log()) == 0.0


def test_first_difference_counts_missing_tokens():
    assert metrics.first_difference(np.array([1, 2, 3]), np.array([1, 2, 3])) is None
    assert metrics.first_difference(np.array([1, 9, 3]), np.array([1, 2, 3])) == 1
    assert metrics.first_difference(np.array([1, 2]), np.array([1, 2, 3])) == 2


def test_span_recall_counts_positions():
    assert metrics.span_recall(np.array([3, 4, 9]), [(3, 7)]) == 0.5
    assert metrics.span_recall(np.array([3]), []) is None


def test_kv_distance_is_zero_for_equal_and_one_for_zero():
    full = torch.ones(2, 3, 1, 4)
    assert metrics.kv_distance(full, torch.zeros_like(full), full, full).tolist() == [[0.0, 1.0], [0.0, 1.0]]
