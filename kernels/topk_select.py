"""The indices of the highest scores, ascending, in Triton: one program, no sort and no answer from the device needed.

The law is `kernels.reference.topk_select`. Scores become unsigned numbers of the same order, whose count-th largest is found
byte by byte, each byte from a histogram of the scores that agree with it so far. A last pass writes what lies above it, and
of its equals those that come first.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.checks import check_vector

BLOCK, NUM_WARPS = 4096, 16


def topk_select(scores: Tensor, count: int) -> Tensor:
    """Returns int64 [count], as the reference, which it agrees with; NaN counts as the highest score, as in torch's sort.

    scores: float32 [N], contiguous. Raises ValueError where they are not, or there are fewer than `count`.
    """
    check_vector("The scores", scores, (torch.float32,), scores.device)
    if not 0 <= count <= scores.shape[0]:
        raise ValueError(f"{count} of {scores.shape[0]} scores are asked for; ask for at least 0 and at most all.")
    chosen = torch.empty(count, dtype=torch.int64, device=scores.device)
    if count:
        block = min(BLOCK, triton.next_power_of_2(max(16, scores.shape[0])))
        select_kernel[(1,)](scores, chosen, scores.shape[0], count, BLOCK=block, num_warps=NUM_WARPS)
    return chosen


@triton.jit
def _load_ordered(scores, index, num_scores):
    """Returns scores as uint32 of the same order, NaN highest and -0 equal to 0; 0, the lowest, where there is none."""
    score = tl.load(scores + index, mask=index < num_scores, other=0.0)
    score = tl.where(score == 0.0, 0.0, score)
    bits = score.to(tl.int32, bitcast=True)
    # Of negative numbers all bits are turned, so that the largest magnitude is the lowest; of others the sign alone.
    ordered = (bits ^ ((bits >> 31) | -0x80000000)).to(tl.uint32, bitcast=True)
    return tl.where(index < num_scores, tl.where(score != score, 0xFFFFFFFF, ordered), 0).to(tl.uint32)


@triton.jit(do_not_specialize=["num_scores", "count"])
def select_kernel(scores, chosen, num_scores, count, BLOCK: tl.constexpr):
    """Writes the indices of the `count` highest of num_scores scores, ascending."""
    digit = tl.arange(0, 256)
    threshold = tl.zeros([1], dtype=tl.uint32)
    # How many of the scores that agree with the threshold so far belong to the highest.
    wanted = count
    for step in tl.static_range(4):
        shift = 24 - 8 * step
        counts = tl.zeros([256], dtype=tl.int32)
        for start in tl.range(0, num_scores, BLOCK):
            index = start + tl.arange(0, BLOCK)
            ordered = _load_ordered(scores, index, num_scores)
            is_near = index < num_scores
            if step > 0:
                is_near = is_near & ((ordered >> (shift + 8)) == threshold)
            counts += tl.histogram(((ordered >> shift) & 0xFF).to(tl.int32), 256, mask=is_near)
        above = tl.sum(counts, 0) - tl.cumsum(counts, 0)
        is_digit = (above < wanted) & (above + counts >= wanted)
        wanted -= tl.sum(tl.where(is_digit, above, 0), 0)
        threshold = (threshold << 8) | tl.sum(tl.where(is_digit, digit, 0), 0).to(tl.uint32)
    num_chosen = 0
    num_equal = 0
    for start in tl.range(0, num_scores, BLOCK):
        index = start + tl.arange(0, BLOCK)
        ordered = _load_ordered(scores, index, num_scores)
        is_equal = ((ordered == threshold) & (index < num_scores)).to(tl.int32)
        is_early = num_equal + tl.cumsum(is_equal, 0) <= wanted
        is_chosen = (ordered > threshold) | ((is_equal > 0) & is_early)
        place = num_chosen + tl.cumsum(is_chosen.to(tl.int32), 0) - 1
        tl.store(chosen + place, index.to(tl.int64), mask=is_chosen)
        num_chosen += tl.sum(is_chosen.to(tl.int32), 0)
        num_equal += tl.sum(is_equal, 0)
