"""The highest scores, ascending by position, equal torch's stable sort: ties, infinities and NaN included."""

import pytest
import torch
from kernel_samples import draw, refused

from kernels import reference
from kernels.topk_select import topk_select

NAN, INF = float("nan"), float("inf")
LISTS = {
    "one": [0.25],
    "all_equal": [0.5] * 37,
    "two_values": [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0],
    "signs": [-1.0, 2.0, -3.0, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38],
    "infinities": [1.0, -INF, INF, 0.0, INF, -INF],
    "nan": [1.0, NAN, INF, -INF, NAN, 2.0, -NAN],
    "neighbours": [1.0 + i * 2**-23 for i in range(20)] + [1.0] * 3,
}


def assert_equals_reference(scores, count):
    got = topk_select(scores, count)
    assert got.dtype == torch.int64 and got.tolist() == reference.topk_select(scores, count).tolist()


@pytest.mark.parametrize("name", LISTS)
def test_every_count_of_awkward_scores_equals_reference(device, name):
    scores = torch.tensor(LISTS[name], device=device)
    for count in range(len(scores) + 1):
        assert_equals_reference(scores, count)


@pytest.mark.parametrize("num_scores", [15, 17, 1000, 4096, 4097, 10_001])
def test_sizes_off_the_block_equal_reference(device, num_scores):
    scores = draw(num_scores, seed=num_scores, device=device)
    for count in {1, num_scores // 3, num_scores - 1, num_scores}:
        assert_equals_reference(scores, count)


@pytest.mark.parametrize("count", [1, 700, 5000])
def test_ties_across_blocks_go_to_the_first(device, count):
    scores = (draw(9000, seed=1, device=device) * 2).round()
    assert_equals_reference(scores, count)


def test_attention_scores_of_one_magnitude_equal_reference(device):
    scores = draw(5000, seed=3, device=device).softmax(0)
    assert_equals_reference(scores, 1500)


def test_selections_are_nested_as_the_count_grows(device):
    scores = (draw(300, seed=2, device=device) * 8).round()
    smaller = set()
    for count in (10, 60, 61, 299):
        larger = set(topk_select(scores, count).tolist())
        assert smaller < larger and len(larger) == count
        smaller = larger


def test_scores_stay_as_they_are(device):
    scores = draw(100, seed=4, device=device)
    kept = scores.clone()
    topk_select(scores, 30)
    assert torch.equal(scores, kept)


def test_what_cannot_be_asked_for_is_refused(device):
    scores = draw(10, seed=0, device=device)
    refused("11 of 10 scores", lambda: topk_select(scores, 11))
    refused("-1 of 10 scores", lambda: topk_select(scores, -1))
    refused("contiguous, float32", lambda: topk_select(scores.double(), 1))
    refused("contiguous, float32", lambda: topk_select(draw(10, 2, seed=0, device=device)[:, 0], 1))
