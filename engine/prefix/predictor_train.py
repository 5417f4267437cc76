"""Trains the session predictor: samples split by conversation, early stop on the log loss. Knows no model and no text.

Without class weights: they teach the probabilities of a world in which as many sessions end as go on, and policies weigh blocks by what
they are told. The log loss, unlike the share of right answers, asks for probabilities.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import BadRequest
from engine.prefix.predictor import SessionMLP
from engine.prefix.predictor_rule import features, fit
from engine.prefix.predictor_scores import Worth, worth

# Train, stop, test; the paper does not tell its split.
SHARES = (0.6, 0.2, 0.2)
LEARNING_RATE, BATCH, MOST_EPOCHS, PATIENCE = 5e-4, 64, 50, 10
LEAST_CONVERSATIONS, NUM_TIMED = 10, 200


class Samples(NamedTuple):
    """Hidden states float32 [n, hidden], whether the session went on int64 [n], the conversation each is from int64 [n], and what a
    server knows without the model: turn, prompt tokens, tools int64 [n, 3]."""

    hidden: Tensor
    goes_on: Tensor
    conversation: Tensor
    known: Tensor

    def pick(self, mask: Tensor) -> "Samples":
        """Returns the samples where bool [n] is set."""
        return Samples(*(column[mask] for column in self))

    @property
    def num(self) -> int:
        """Returns n."""
        return self.hidden.shape[0]


class Trained(NamedTuple):
    """A network, and how it came about.

    Args:
        said, by_rule: float32 [held-out prompts], the network's probabilities there, and those of the logistic rule fitted on the same
            training samples.
        parts: the samples for training, stopping and testing.
    """

    mlp: SessionMLP
    said: np.ndarray
    by_rule: np.ndarray
    parts: tuple[Samples, Samples, Samples]
    num_epochs: int

    @property
    def test(self) -> Worth:
        """Returns what the network is worth on the held-out conversations."""
        return worth(self.parts[2].goes_on, self.said)

    @property
    def rule(self) -> Worth:
        """Returns what the rule is worth there."""
        return worth(self.parts[2].goes_on, self.by_rule)


def split(samples: Samples, seed: int) -> tuple[Samples, Samples, Samples]:
    """Returns the samples for training, stopping and testing; no conversation is in two of them. Raises BadRequest."""
    names = samples.conversation.unique()
    if len(names) < LEAST_CONVERSATIONS:
        raise BadRequest(f"There are {len(names)} conversations to learn from; at least {LEAST_CONVERSATIONS} are needed.")
    order = names[torch.from_numpy(np.random.default_rng(seed).permutation(len(names)))]
    ends = np.cumsum(np.round(np.array(SHARES[:2]) * len(order)).astype(int)).tolist()
    groups = (order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :])
    train, stop, test = (samples.pick(torch.isin(samples.conversation, group)) for group in groups)
    for name, part in (("training", train), ("stopping", stop), ("testing", test)):
        if part.goes_on.unique().numel() < 2:
            raise BadRequest(
                f"All {part.num} prompts for {name} are of one class; give more conversations, some that end and some that go on."
            )
    return train, stop, test


def train(samples: Samples, seed: int, progress: Callable[[int, float], bool] = lambda epoch, loss: True) -> Trained:
    """Returns the network that was best on the stopping conversations. The same samples and seed give the same one.

    Args:
        progress: told each epoch's log loss there; training ends early where it returns False.

    Raises BadRequest where the samples are too few.
    """
    parts = learning, stopping, testing = split(samples, seed)
    # Building and dropout draw from the global generator, which belongs to the caller.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mlp = SessionMLP(samples.hidden.shape[1])
        mlp.standardise_by(learning.hidden)
        best, least, since, epoch = _copy(mlp), np.inf, 0, 0
        optimizer = torch.optim.Adam(mlp.parameters(), lr=LEARNING_RATE)
        for epoch in range(1, MOST_EPOCHS + 1):
            mlp.train()
            for picks in torch.randperm(learning.num).split(BATCH):
                optimizer.zero_grad()
                F.cross_entropy(mlp(learning.hidden[picks]), learning.goes_on[picks]).backward()
                optimizer.step()
            loss = log_loss(mlp, stopping)
            if loss < least:
                best, least, since = _copy(mlp), loss, 0
            else:
                since += 1
            if since >= PATIENCE or not progress(epoch, loss):
                break
    mlp.load_state_dict(best)
    rule = fit(features(*learning.known.numpy().T), learning.goes_on.numpy())
    by_rule = rule.probabilities(features(*testing.known.numpy().T))
    return Trained(mlp, probabilities(mlp, testing.hidden).numpy(), by_rule, parts, epoch)


@torch.inference_mode()
def log_loss(mlp: SessionMLP, samples: Samples) -> float:
    """Returns the mean of -ln of the probability that was given to what came true."""
    return float(F.cross_entropy(mlp.eval()(samples.hidden), samples.goes_on))


@torch.inference_mode()
def probabilities(mlp: SessionMLP, hidden: Tensor) -> Tensor:
    """Returns float32 [n], how likely each session goes on."""
    return torch.softmax(mlp.eval()(hidden), dim=-1)[:, 1]


@torch.inference_mode()
def predictions_per_s(mlp: SessionMLP, hidden: Tensor) -> float:
    """Returns how many single predictions a second the network makes."""
    mlp.eval()
    begun = time.perf_counter()
    for i in range(NUM_TIMED):
        row = i % hidden.shape[0]
        int(mlp(hidden[row : row + 1]).argmax())
    return NUM_TIMED / (time.perf_counter() - begun)


def _copy(mlp: SessionMLP) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in mlp.state_dict().items()}
