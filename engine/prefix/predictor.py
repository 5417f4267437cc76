"""Predicts whether a session goes on, from the serving model's last hidden state of a prompt (2605.18825, session predictor).

MLP hidden -> 256 -> ReLU -> dropout .3 -> 64 -> ReLU -> dropout .2 -> 2; class 1 is "another user turn follows". The state is taken
behind the last layer, before the final norm, of the prompt's last token; it is standardised by the training samples' mean and
deviation (our choice: the paper does not say). Knows nothing of where samples come from.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec
import torch
from torch import Tensor, nn

from engine.model.calibration import calibration_path, short_name
from engine.model.spec import ModelSpec

SHIPPED_DIR = Path(__file__).resolve().parents[2] / "assets" / "predictors"
FORMAT, FOLDER, CARD = "fusescope-predictor/2", "predictors", "card"
WIDTHS, DROPOUTS = (256, 64), (0.3, 0.2)
LEAST_DEVIATION = 1e-6

logger = logging.getLogger(__name__)


class PredictorCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a predictor was made of and what it is worth.

    Args:
        data: what it was trained on; prior: share of sessions that go on in the training samples.
        num_conversations, num_samples: of training, stopping and held-out test, which share no conversation.
        accuracy, f1, mcc, calibration_error: on the held-out conversations; baseline_accuracy: of always saying the more frequent class
            there; rule_accuracy, rule_mcc: of the logistic rule on turn, length and tools, fitted and held out alike.
        predictions_per_s: of the MLP alone, one at a time.
    """

    model: str
    revision: str
    data: str
    num_conversations: tuple[int, int, int]
    num_samples: tuple[int, int, int]
    prior: float
    accuracy: float
    f1: float
    mcc: float
    calibration_error: float
    baseline_accuracy: float
    rule_accuracy: float
    rule_mcc: float
    predictions_per_s: float
    num_epochs: int
    seed: int
    created: str
    format: str = FORMAT


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
    save_file(state, partial, metadata={CARD: msgspec.json.encode(predictor.card).decode()})
    partial.replace(path)
    path.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(predictor.card), indent=1) + b"\n")
    return path


def find_predictor(spec: ModelSpec, device: torch.device, cache_dir: Path) -> LearnedPredictor | None:
    """Returns the predictor trained on this machine, else the shipped one of a model of that name, else None."""
    own = calibration_path(cache_dir / FOLDER, spec.name).with_suffix(".safetensors")
    return _first_fitting((own, *sorted(SHIPPED_DIR.glob("*.safetensors"))), spec, device)


def _first_fitting(paths: Iterable[Path], spec: ModelSpec, device: torch.device) -> LearnedPredictor | None:
    for path in paths:
        found = _read(path, spec) if path.is_file() else None
        if found is not None:
            return LearnedPredictor(*found, device)
    return None


def _read(path: Path, spec: ModelSpec) -> tuple[SessionMLP, PredictorCard] | None:
    """Returns a file's network and card, None with a warning where it is not for this model or cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            card = msgspec.json.decode((file.metadata() or {}).get(CARD, ""), type=PredictorCard)
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        if card.format != FORMAT or short_name(card.model) != short_name(spec.name):
            return None
        mlp = SessionMLP(spec.hidden_size)
        mlp.load_state_dict(state)
    except (SafetensorError, msgspec.DecodeError, OSError, RuntimeError) as error:
        logger.warning("the session predictor %s is passed over: %s", path, str(error).splitlines()[0])
        return None
    return mlp, card
