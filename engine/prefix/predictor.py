"""Predicts whether a session goes on, from the serving model's last hidden state of a prompt (2605.18825, session predictor).

MLP hidden -> 256 -> ReLU -> dropout .3 -> 64 -> ReLU -> dropout .2 -> 2; class 1 is "another user turn follows". The state is taken
behind the last layer, before the final norm, of the prompt's last token; it is standardised by the training samples' mean and
deviation (our choice: the paper does not say). Knows nothing of where samples come from.
"""

import hashlib
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import torch
from torch import Tensor, nn

from engine.errors import BadRequest
from engine.model.calibration import calibration_path, short_name
from engine.model.spec import ModelSpec

SHIPPED_DIR = Path(__file__).resolve().parents[2] / "assets" / "predictors"
FORMAT, FOLDER, CARD, DIGEST = "fusescope-predictor/2", "predictors", "card", "sha256"
COMMAND = "python -m engine.prefix.train_predictor"
WIDTHS, DROPOUTS = (256, 64), (0.3, 0.2)
LEAST_DEVIATION = 1e-6

logger = logging.getLogger(__name__)


class PredictorCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a predictor was made of and what it is worth.

    Args:
        data: what it was trained on; licences: of that data; command: that made it.
        prior: share of prompts in the training samples whose session goes on.
        num_conversations, num_samples: of training, stopping and held-out test, which share no conversation.
        accuracy, f1, mcc, calibration_error, brier: on the held-out conversations; baseline_accuracy, baseline_brier: of always saying
            the more frequent class there, and the prior; those named `rule`: of the logistic rule on turn, length and tools, fitted and
            held out alike.
        intervals: 95 %, over held-out conversations, by field; those named `minus_rule` are of the difference.
        predictions_per_s: of the MLP alone, one at a time.
    """

    model: str
    revision: str
    data: str
    licences: str
    command: str
    num_conversations: tuple[int, int, int]
    num_samples: tuple[int, int, int]
    prior: float
    accuracy: float
    f1: float
    mcc: float
    calibration_error: float
    brier: float
    baseline_accuracy: float
    baseline_brier: float
    rule_accuracy: float
    rule_mcc: float
    rule_calibration_error: float
    rule_brier: float
    intervals: dict[str, tuple[float, float]]
    predictions_per_s: float
    num_epochs: int
    seed: int
    created: str
    format: str = FORMAT

    @property
    def beats_rule(self) -> bool:
        """Whether its probabilities are better than the rule's beyond doubt: those of fewer squared errors on held-out conversations."""
        return self.intervals["brier_minus_rule"][1] < 0.0


class SessionPredictor(Protocol):
    """Tells how likely a session goes on."""

    @property
    def described(self) -> str:
        """Returns a phrase for people: which predictor, and what it is worth."""
        ...

    def probability(self, hidden: Tensor) -> float:
        """Returns the probability that a session goes on, from the last hidden state [1, hidden] of its prompt."""
        ...


class PriorPredictor:
    """Says the same of every session.

    Args:
        prior: share of sessions that go on.
        source: where that share is from.
    """

    def __init__(self, prior: float, source: str) -> None:
        self.prior, self._source = prior, source

    @property
    def described(self) -> str:
        """Returns the prior and its source."""
        return f"a constant: {self.prior:.0%} of sessions go on ({self._source})"

    def probability(self, hidden: Tensor) -> float:
        """Returns the prior."""
        return self.prior


class SessionMLP(nn.Module):
    """The network with its standardisation; float32, whatever the model computes in."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(hidden_size))
        self.register_buffer("deviation", torch.ones(hidden_size))
        sizes, layers = (hidden_size, *WIDTHS), []
        for i, dropout in enumerate(DROPOUTS):
            layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], 2))

    def standardise_by(self, hidden: Tensor) -> None:
        """Takes mean and deviation of hidden states [n, hidden]."""
        self.mean.copy_(hidden.mean(0))
        self.deviation.copy_(hidden.std(0, correction=0).clamp_min(LEAST_DEVIATION))

    def forward(self, hidden: Tensor) -> Tensor:
        """Returns scores [n, 2] of hidden states [n, hidden]."""
        return self.layers((hidden.float() - self.mean) / self.deviation)


class LearnedPredictor:
    """A trained network on the model's device, with its card."""

    def __init__(self, mlp: SessionMLP, card: PredictorCard, device: torch.device) -> None:
        self.mlp, self.card = mlp.to(device).eval(), card

    @property
    def described(self) -> str:
        """Returns what it is worth on held-out conversations."""
        card = self.card
        return (
            f"an MLP on the model's last hidden state, trained on {card.data}: accuracy {card.accuracy:.1%}, MCC {card.mcc:.2f} on "
            f"{card.num_samples[2]:,} held-out prompts"
        )

    @torch.inference_mode()
    def probability(self, hidden: Tensor) -> float:
        """Returns the network's probability."""
        return float(torch.softmax(self.mlp(hidden), dim=-1)[0, 1])


def save_predictor(predictor: LearnedPredictor, folder: Path) -> Path:
    """Writes weights and card into a folder as one safetensors file, and the card to read beside it; returns the weights' path."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    path = calibration_path(folder, predictor.card.model).with_suffix(".safetensors")
    partial = path.with_name(path.name + ".part")
    state = {name: tensor.cpu().contiguous() for name, tensor in predictor.mlp.state_dict().items()}
    save_file(state, partial, metadata={CARD: msgspec.json.encode(predictor.card).decode(), DIGEST: _digest(state)})
    partial.replace(path)
    path.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(predictor.card), indent=1) + b"\n")
    return path


def find_better(spec: ModelSpec, device: torch.device, cache_dir: Path) -> LearnedPredictor | None:
    """Returns the predictor that `find_predictor` finds where its card says that it is better than the logistic rule, else None."""
    found = find_predictor(spec, device, cache_dir)
    return found if found is not None and found.card.beats_rule else None


def find_predictor(spec: ModelSpec, device: torch.device, cache_dir: Path) -> LearnedPredictor | None:
    """Returns the predictor trained on this machine, else the shipped one of a model of that name, else None; warns of one that is
    damaged."""
    own = calibration_path(cache_dir / FOLDER, spec.name).with_suffix(".safetensors")
    return _first_fitting((own, *sorted(SHIPPED_DIR.glob("*.safetensors"))), spec, device)


def load_predictor(path: Path, spec: ModelSpec, device: torch.device) -> LearnedPredictor | None:
    """Returns the predictor in a file, None where it is another model's. Raises BadRequest where it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            notes = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        card = msgspec.json.decode(notes.get(CARD, ""), type=PredictorCard)
        if card.format != FORMAT or short_name(card.model) != short_name(spec.name):
            return None
        if notes.get(DIGEST) != _digest(state):
            raise _damaged(path, "its weights are not those that were written")
        mlp = SessionMLP(spec.hidden_size)
        mlp.load_state_dict(state)
    except (SafetensorError, msgspec.DecodeError, OSError, RuntimeError) as error:
        raise _damaged(path, str(error).splitlines()[0].rstrip(":. ")) from None
    return LearnedPredictor(mlp, card, device)


def _first_fitting(paths: Iterable[Path], spec: ModelSpec, device: torch.device) -> LearnedPredictor | None:
    for path in paths:
        try:
            found = load_predictor(path, spec, device) if path.is_file() else None
        except BadRequest as error:
            logger.warning("%s It is passed over.", error)
            continue
        if found is not None:
            return found
    return None


def _damaged(path: Path, reason: str) -> BadRequest:
    return BadRequest(f"The session predictor {path.name!r} cannot be used ({reason[:120]}); train it anew with {COMMAND}.")


def _digest(state: Mapping[str, Tensor]) -> str:
    """Returns what tells tensors from others, so that a flipped bit does not go unseen."""
    found = hashlib.sha256()
    for name in sorted(state):
        found.update(name.encode() + state[name].cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
