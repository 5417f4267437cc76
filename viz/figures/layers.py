"""Layers in words and as stretches: which ones a method reads, and which ones ran more rows than it recomputes."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.types import MethodRun, Run


class Stretch(NamedTuple):
    """Layers first to last, both included."""

    first: int
    last: int


def stretches(layers: Sequence[int]) -> tuple[Stretch, ...]:
    """Returns the stretches of consecutive layers among `layers`, lowest first."""
    runs = itertools.groupby(enumerate(sorted(set(layers))), lambda pair: pair[1] - pair[0])
    groups = [[layer for _, layer in group] for _, group in runs]
    return tuple(Stretch(group[0], group[-1]) for group in groups)


def layer_words(layers: Sequence[int]) -> str:
    """Returns 'layer 20', 'layers 20, 22 and 24' or 'layers 10–29'."""
    parts = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}–{b}" for a, b in stretches(layers)]
    listed = ", ".join(parts)
    if "–" not in listed and ", " in listed:
        head, _, tail = listed.rpartition(", ")
        listed = f"{head} and {tail}"
    return f"layer{'' if listed.isdigit() else 's'} {listed}"


def whole_layers(run: Run, method: MethodRun) -> tuple[int, ...]:
    """Returns the layers that all tokens ran through, () where the method did not say."""
    return _layers_with(run, method, lambda num: num >= len(run.tokens))


def wider_layers(run: Run, method: MethodRun) -> tuple[int, ...]:
    """Returns the layers that more rows ran through than are recomputed in the end, but not all; which rows is not recorded."""
    return _layers_with(run, method, lambda num: len(method.rows) < num < len(run.tokens))


def exact_layers(run: Run, method: MethodRun) -> int:
    """Returns how many of the first layers have exact K and V for every token: layer 0 and those behind layers that all ran through."""
    whole, num = whole_layers(run, method), 1
    while num - 1 in whole:
        num += 1
    return min(num, run.num_layers)


def _layers_with(run: Run, method: MethodRun, wanted: Callable[[int], bool]) -> tuple[int, ...]:
    if method.layer_rows is None or method.method == "full":
        return ()
    return tuple(layer for layer, num in enumerate(method.layer_rows[: run.num_layers].tolist()) if wanted(num))
