"""Scores of keys by the question's attention equal the float32 reference, for every reduction."""

import pytest
import torch
from kernel_samples import draw, largest_error, refused

from kernels import reference
from kernels.query_token_scores import REDUCTIONS, query_token_scores
from kernels.tiles import Tile

# Weights are at most 1; those of a sample of this size about 1 / 67.
TOLERANCE = {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}
NUM_KEYS = 67
QUESTIONS = {
    "one_token": [NUM_KEYS - 1],
    "first_key_alone": [0],
    "tail": list(range(60, NUM_KEYS)),
    "all_keys": list(range(NUM_KEYS)),
    "unsorted": [40, 3, 66, 12, 12],
}


def sample(device, question, group=3, dim=64, num_kv_heads=2, num_keys=NUM_KEYS, dtype=torch.float32):
    positions = torch.tensor(question, device=device)
    query = draw(len(question), num_kv_heads * group, dim, seed=1, device=device, dtype=dtype)
    return query, draw(num_keys, num_kv_heads, dim, seed=2, device=device, dtype=dtype), positions


def assert_equals_reference(query, keys, positions, reduction, **options):
    expected = reference.token_scores(query, keys, positions, reduction)
    got = query_token_scores(query, keys, positions, reduction, **options)
    assert got.shape == expected.shape and got.dtype == torch.float32
    assert largest_error(got, expected) < TOLERANCE[query.dtype]


@pytest.mark.parametrize("group", [1, 3, 4, 8])
@pytest.mark.parametrize("dim", [64, 80, 96, 128, 256])
def test_mean_equals_reference_for_every_head_size_and_group(device, dim, group):
    assert_equals_reference(*sample(device, QUESTIONS["tail"], group, dim), "mean")


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_every_reduction_equals_reference(device, reduction, question):
    assert_equals_reference(*sample(device, QUESTIONS[question]), reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("num_splits", [2, 5])
def test_splits_and_tiles_change_nothing(device, reduction, num_splits):
    assert_equals_reference(*sample(device, QUESTIONS["tail"]), reduction, num_splits=num_splits)
    assert_equals_reference(*sample(device, QUESTIONS["unsorted"]), reduction, num_splits=num_splits, tile=Tile(16, 16, 4, 1))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_narrow_types_stay_within_their_rounding(device, dtype, reduction):
    assert_equals_reference(*sample(device, QUESTIONS["tail"], dtype=dtype), reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_keys_behind_the_question_neither_matter_nor_score(device, reduction):
    query, keys, positions = sample(device, [20, 25])
    before = query_token_scores(query, keys, positions, reduction)
    keys[26:] = float("nan")
    after = query_token_scores(query, keys, positions, reduction)
    assert torch.equal(before, after) and not after[..., 26:].any() and after[..., :26].gt(0).all()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_inputs_may_be_strided_and_share_memory_and_stay_as_they_are(device, reduction):
    rows = draw(2, NUM_KEYS, 64, seed=1, device=device)
    kept, keys = rows.clone(), rows.transpose(0, 1)
    # The question's queries are a view of the keys themselves.
    assert_equals_reference(keys[60:], keys, torch.arange(60, NUM_KEYS, device=device), reduction)
    assert torch.equal(rows, kept)


def test_means_sum_to_one(device):
    scores = query_token_scores(*sample(device, QUESTIONS["all_keys"], group=4), "mean")
    torch.testing.assert_close(scores.sum().cpu(), torch.tensor(1.0), rtol=0, atol=1e-5)


def test_extreme_scores_do_not_overflow(device):
    query, keys, positions = sample(device, QUESTIONS["tail"])
    for reduction in REDUCTIONS:
        expected = reference.token_scores(query * 40, keys, positions, reduction)
        assert largest_error(query_token_scores(query * 40, keys, positions, reduction), expected) < 2e-3


def test_what_does_not_fit_together_is_refused(device):
    query, keys, positions = sample(device, QUESTIONS["tail"])
    refused("'sum'; it must be one of mean, max, head, norm", lambda: query_token_scores(query, keys, positions, "sum"))
    refused("it must have 7", lambda: query_token_scores(query, keys, positions[:3]))
    refused("int64 or int32", lambda: query_token_scores(query, keys, positions.float()))
    refused("do not divide", lambda: query_token_scores(query[:, :5], keys, positions))
    refused("as what it is used with", lambda: query_token_scores(query, keys[..., :32], positions))
    refused("side by side", lambda: query_token_scores(query, keys[..., ::2], positions))
    refused("at least one of each", lambda: query_token_scores(query[:0], keys, positions[:0]))
