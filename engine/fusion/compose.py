"""Methods by name, with additions: "qcfuse", "qcfuse+primed", "qcfuse_learned+k_shift"."""

from engine.errors import UnknownName
from engine.fusion.base import METHODS, FusionMethod
from engine.fusion.wrapper import WRAPPERS
from engine.registry import field_names

# What is offered and measured beside the plain methods: ours, and what each addition gives alone.
COMBINATIONS = (
    "reuse+primed-mean",
    "qcfuse+k_shift",
    "qcfuse+primed",
    "qcfuse+primed-mean",
    "qcfuse_learned+k_shift",
    "qcfuse_learned+primed-mean",
)


def method_names() -> tuple[str, ...]:
    """Returns the names of all methods and of the combinations that are offered beside them."""
    return (*METHODS.names(), *COMBINATIONS)


def create_method(name: str, **params: object) -> FusionMethod:
    """Returns the method of a name, `params` being the plain method's. Raises UnknownName, BadRequest."""
    base, *additions = parse_name(name)
    method = METHODS.create(base, **params)
    for addition in additions:
        method = WRAPPERS.create(addition, inner=method)
    return method


def has_ratio(name: str) -> bool:
    """Returns whether a method has a recompute ratio. Raises UnknownName."""
    return "ratio" in field_names(METHODS.get(parse_name(name)[0]))


def has_seed(name: str) -> bool:
    """Returns whether a method draws at random. Raises UnknownName."""
    return "seed" in field_names(METHODS.get(parse_name(name)[0]))


def parse_name(name: str) -> list[str]:
    """Returns the plain method's name and those of the additions. Raises UnknownName."""
    parts = name.split("+")
    if parts[0] not in METHODS.names() or any(part not in WRAPPERS.names() for part in parts[1:]):
        additions = ", ".join(f"+{addition}" for addition in WRAPPERS.names())
        raise UnknownName(f"Unknown method {name!r}; known ones are: {', '.join(METHODS.names())}, each with or without {additions}.")
    if len(set(parts)) < len(parts):
        raise UnknownName(f"The method {name!r} adds the same thing twice; name each addition once.")
    return parts
