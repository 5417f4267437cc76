"""Fits weights of attention heads to what true KV would gain, and drops the layers that do not help.

Pure tensors: a sample is the scores that its tokens got from every head, and what each token's true KV would gain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

STEPS, LEARNING_RATE, FOLDS, SHARE = 150, 0.05, 5, 0.10


@dataclass(frozen=True, eq=False, slots=True)
class HeadSample:
    """scores: float32 [layers, Hq, M], none negative; gains: float32 [M], at least one positive; weight: of the sample in the loss."""

    scores: Tensor
    gains: Tensor
    weight: float = 1.0

    def of(self, layers: Sequence[int]) -> "HeadSample":
        """Returns the sample with the scores of some layers, by index."""
        return HeadSample(self.scores[list(layers)], self.gains, self.weight)


class LayerSet(NamedTuple):
    """A choice of layers, by index; each sample's loss and share of the gain caught by weights fitted without it."""

    layers: tuple[int, ...]
    losses: np.ndarray
    caught: np.ndarray


class Selection(NamedTuple):
    """All layers, the fewest that are as good, and their weights [len(kept.layers), Hq], largest 1, fitted on all samples."""

    every: LayerSet
    kept: LayerSet
    weights: Tensor


def fit_weights(samples: Sequence[HeadSample]) -> Tensor:
    """Returns float32 [layers, Hq] weights, largest 1, of the least mean loss: Adam on weights kept positive by softplus."""
    raw = torch.zeros(samples[0].scores.shape[:2], requires_grad=True)
    optimizer = torch.optim.Adam([raw], lr=LEARNING_RATE)
    with torch.enable_grad():
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.stack([sample.weight * loss(sample, F.softplus(raw)) for sample in samples]).sum().backward()
            optimizer.step()
    weights = F.softplus(raw.detach())
    return weights / weights.max()


def loss(sample: HeadSample, weights: Tensor) -> Tensor:
    """Returns the cross entropy, above its least value, between the roots of gains and of scores, each summing to 1; nats."""
    target = sample.gains.clamp_min(0).sqrt()
    found = token_scores(sample, weights).clamp_min(1e-20).sqrt()
    return F.kl_div(found.log() - found.sum().log(), target / target.sum(), reduction="sum")


def token_scores(sample: HeadSample, weights: Tensor) -> Tensor:
    """Returns float32 [M], the weighted sum of the heads' scores."""
    return weights.flatten() @ sample.scores.flatten(0, 1)


def caught(gains: Tensor, scores: Tensor) -> float:
    """Returns how much of the largest gain that a tenth of the tokens can have goes to the tenth of best score."""
    count, positive = max(1, int(SHARE * len(gains))), gains.clamp_min(0)
    return float(positive[scores.topk(count).indices].sum() / positive.topk(count).values.sum())


def held_out(samples: Sequence[HeadSample], layers: Sequence[int]) -> LayerSet:
    """Returns what weights of some layers, fitted on the other folds, do on every sample. Needs at least 2 samples."""
    picked = [sample.of(layers) for sample in samples]
    losses, found = np.zeros(len(picked)), np.zeros(len(picked))
    for fold in range(min(FOLDS, len(picked))):
        weights = fit_weights([sample for i, sample in enumerate(picked) if i % FOLDS != fold])
        for i in range(fold, len(picked), FOLDS):
            losses[i], found[i] = float(loss(picked[i], weights)), caught(picked[i].gains, token_scores(picked[i], weights))
    return LayerSet(tuple(layers), losses, found)


def select_layers(samples: Sequence[HeadSample], progress: Callable[[str], None] = lambda text: None) -> Selection:
    """Returns the fewest layers whose held-out loss is within one standard error of that of all layers (paired difference)."""
    paths = ever_fewer(samples)
    every = kept = held_out(samples, paths[0])
    for layers in paths[1:]:
        fewer = held_out(samples, layers)
        gaps = fewer.losses - every.losses
        progress(f"{len(layers)} layers: held-out loss {fewer.losses.mean():.4f}, {gaps.mean():+.4f} ± {_error(gaps):.4f} to all")
        if gaps.mean() <= _error(gaps):
            kept = fewer
    return Selection(every, kept, fit_weights([sample.of(kept.layers) for sample in samples]))


def ever_fewer(samples: Sequence[HeadSample]) -> list[tuple[int, ...]]:
    """Returns all layers, then ever fewer: each time without the one whose heads add least to the scores, fitted anew."""
    left = list(range(samples[0].scores.shape[0]))
    sets = [tuple(left)]
    while len(left) > 1:
        picked = [sample.of(left) for sample in samples]
        weights = fit_weights(picked)
        shares = torch.stack([sample.weight * _layer_shares(sample, weights) for sample in picked]).sum(dim=0)
        left.pop(int(shares.argmin()))
        sets.append(tuple(left))
    return sets


def _layer_shares(sample: HeadSample, weights: Tensor) -> Tensor:
    """Returns float32 [layers], each layer's part of the sample's summed scores."""
    parts = torch.einsum("lh,lht->l", weights, sample.scores)
    return parts / parts.sum()


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
