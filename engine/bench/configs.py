"""Which methods at which ratios a benchmark runs, as its options name them."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.errors import BadRequest
from engine.fusion.base import FusionMethod
from engine.fusion.compose import create_method, has_ratio, has_seed, method_names

FULL = "full"
# The rule of the demo paper, and both papers' rules.
PAPER_RULE = "qcfuse"
PAPER_RULES = (PAPER_RULE, "qcfuse_cv")
# Plain methods that go beyond the papers; what is combined with an addition ("+") does too.
_OURS = ("qcfuse_learned",)


class Config(NamedTuple):
    """One method at one ratio; ratio None where the method has none."""

    method: str
    ratio: float | None

    @property
    def label(self) -> str:
        """Returns the name it has inside a run."""
        return self.method if self.ratio is None else f"{self.method}@{self.ratio:g}"

    @property
    def is_ours(self) -> bool:
        """Returns whether it goes beyond the papers."""
        return "+" in self.method or self.method in _OURS

    def create(self, seed: int) -> FusionMethod:
        """Returns the method. Raises UnknownName, listing the known ones, and BadRequest."""
        params: dict[str, object] = {} if self.ratio is None else {"ratio": self.ratio}
        if has_seed(self.method):
            params["seed"] = seed
        return create_method(self.method, **params)


def parse_configs(methods: str, ratios: str) -> tuple[Config, ...]:
    """Returns full prefill and then the named methods, those with a ratio at every one. Raises UnknownName, BadRequest.

    Args:
        methods: comma-separated names, or "all".
        ratios: comma-separated numbers from 0 to 1.
    """
    names = method_names() if methods == "all" else tuple(part.strip() for part in methods.split(","))
    values = parse_ratios("--ratios", ratios)
    configs = [Config(FULL, None)]
    for name in names:
        if has_ratio(name):
            configs += [Config(name, value) for value in values]
        else:
            configs.append(Config(name, None))
    unique = tuple(dict.fromkeys(configs))
    for config in unique:
        config.create(seed=0)
    return unique


def parse_ratios(option: str, text: str) -> list[float]:
    """Returns the ratios of an option, lowest first, each once. Raises BadRequest."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise BadRequest(f"{option} is {text!r}; give numbers from 0 to 1 separated by commas.") from None
    if any(not 0 <= value <= 1 for value in values):
        raise BadRequest(f"{option} is {text!r}; every ratio must be from 0 to 1.")
    return sorted(set(values))


def writing_labels(configs: Sequence[Config], answers: str | None) -> frozenset[str] | None:
    """Returns the labels of what writes answers, None for all: methods without a ratio, and those at the given ones.

    Raises BadRequest where a ratio is not among those measured.
    """
    if answers is None:
        return None
    wanted = parse_ratios("--answers", answers)
    measured = {config.ratio for config in configs}
    for value in wanted:
        if value not in measured:
            raise BadRequest(f"--answers has {value:g}, which --ratios has not; name ratios that are measured.")
    return frozenset(config.label for config in configs if config.ratio is None or config.ratio in wanted)
