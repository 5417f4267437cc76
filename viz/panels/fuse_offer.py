"""The methods on offer as groups with a sentence each, as data for assets/player/methods.js. Knows nothing of Gradio."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from viz import theme

DEFAULT_METHODS = ("full", "reuse", "qcfuse")
BASELINES = ("full", "reuse", "random")
PUBLISHED = ("qcfuse", "qcfuse_cv")
OWN = ("qcfuse_learned",)


class Group(NamedTuple):
    """A heading, and which names stand under it; a name goes to the first group that takes it."""

    title: str
    takes: Callable[[str], bool]


GROUPS = (
    Group("Baselines", lambda name: name in BASELINES),
    Group("QCFuse, as published", lambda name: name in PUBLISHED),
    Group("Ours, beyond the papers", lambda name: "+" in name or name in OWN),
    Group("Other published methods", lambda name: name in theme.METHODS),
    Group("More methods", lambda name: True),
)


def default_methods(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the methods that are ticked at first, as far as they are on offer."""
    return tuple(name for name in DEFAULT_METHODS if name in names)


def method_groups(names: Sequence[str], rules: Mapping[str, str]) -> dict[str, Any]:
    """Returns the groups that have methods, and the names ticked at first; `rules` are the methods' own sentences."""
    taken: dict[str, list[dict[str, str]]] = {group.title: [] for group in GROUPS}
    for name in theme.method_order(names):
        group = next(group for group in GROUPS if group.takes(name))
        taken[group.title].append(_entry(name, rules))
    groups = [{"title": title, "methods": methods} for title, methods in taken.items() if methods]
    return {"groups": groups, "usual": default_methods(names)}


def _entry(name: str, rules: Mapping[str, str]) -> dict[str, str]:
    family, rule = theme.method_family(name), rules.get(name, "")
    if family != name:
        added = rule.removeprefix("Ours: ")
        rule = f"As {theme.method_label(family)}. {added[:1].upper()}{added[1:]}"
    return {"name": name, "label": theme.method_label(name), "color": theme.method_color(name), "rule": rule.strip()}
