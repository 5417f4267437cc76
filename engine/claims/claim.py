"""Published claims, what they are judged by and what a judgement is. The rules stand beside.

A claim file is data: the claim, its setting, where it stands, and the rule (with its numbers) that computes our
figure. Nothing in it says what came out.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from engine.results import ResultSet
from engine.types import Provenance, Run

if TYPE_CHECKING:
    from engine.claims.evictions import EvictionSet, LiveSet, PredictorFigures

CLAIMS_DIR = Path(__file__).resolve().parents[2] / "datasets" / "claims"
Verdict = Literal["reproduced", "not reproduced", "undecided", "not measured yet", "not testable here"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "not reproduced", "undecided", "not measured yet", "not testable here")


@dataclass(frozen=True, slots=True)
class Claim:
    """One quantitative claim.

    Args:
        figure: the number as published, in a few words.
        setting: hardware, models and data it was measured with.
        source: document and place.
        rule: name of the rule that computes our figure, with its `params`.
        command: what measures the data the rule needs.
        note: a fact about the claim itself, such as a figure of the same paper that says otherwise.
    """

    claim: str
    figure: str
    setting: str
    source: str
    rule: str
    params: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """The claims of one document."""

    title: str
    about: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class LayerTable:
    """Recall@10 % of the answer's tokens by layer, with standard errors: what a calibration found."""

    layers: tuple[int, ...]
    recall: tuple[float, ...]
    recall_se: tuple[float, ...]
    model: str
    n: int
    created: str
    command: str = "python -m engine.model.calibrate"


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that claims are judged by: benchmark results, recorded runs of the scenarios, calibration tables; replays of eviction, live runs,
    cards of session predictors."""

    sets: tuple[ResultSet, ...] = ()
    runs: tuple[Run, ...] = ()
    tables: tuple[LayerTable, ...] = ()
    evictions: "tuple[EvictionSet, ...]" = ()
    lives: "tuple[LiveSet, ...]" = ()
    predictors: "tuple[PredictorFigures, ...]" = ()


@dataclass(frozen=True, slots=True)
class Basis:
    """Where a figure of ours comes from."""

    data: str
    n: int
    model: str
    hardware: str
    created: str
    command: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What one piece of evidence says: the verdict, our figure with its interval in words, and why."""

    verdict: Verdict
    figure: str
    why: str
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with all findings, the one with the most samples first."""

    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict of the first finding."""
        return self.findings[0].verdict


def load_claims(folder: Path = CLAIMS_DIR) -> tuple[ClaimGroup, ...]:
    """Returns the groups of all claim files in order of file name. Raises msgspec.ValidationError on a bad file."""
    paths = sorted(folder.glob("*.json"))
    return tuple(group for path in paths for group in msgspec.json.decode(path.read_bytes(), type=tuple[ClaimGroup, ...]))


def basis_of(results: ResultSet, n: int | None = None) -> Basis:
    """Returns where a figure of a result set comes from."""
    source = results.provenance
    return Basis(
        data_name(results.data),
        n or results.n,
        source.model,
        hardware(source),
        source.created[:10],
        results.command or "python -m engine.bench fuse",
    )


def hardware(source: Provenance) -> str:
    """Returns the device, and the threads where it is a CPU."""
    device = source.device.replace("(R)", "").replace("(TM)", "")
    is_gpu = any(word in device.lower() for word in ("nvidia", "cuda"))
    return device if is_gpu else f"{device}, {source.num_threads} threads"


def data_name(data: str) -> str:
    """Returns the name of a data set without folders and ending."""
    return Path(data).stem if data else "unnamed"
