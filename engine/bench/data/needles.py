"""Generated sets in the manner of RULER (arXiv 2404.06654): several needles have to be found in one long context.

- ruler-mv: one key has several values, all are asked for;
- ruler-mq: several keys with one value each are asked for at once;
- ruler-vt: a chain of variables is assigned one from another, all that hold a value are asked for.
"""

import random
import string
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import NamedTuple

from engine.bench.data.haystack import haystack
from engine.bench.data.sample import Sample

NUM_ASKED, NUM_OTHERS, CHAIN = 3, 3, 4

_WORDS = (
    ("velvet", "copper", "winter", "silent", "hollow", "amber", "crooked", "salted", "northern", "paper", "iron", "gentle"),
    ("lantern", "harvest", "compass", "meadow", "anchor", "thimble", "ladder", "orchid", "falcon", "saddle", "kettle", "bridge"),
    ("north", "dawn", "seven", "delta", "island", "echo", "summit", "garden", "frost", "union", "harbour", "zenith"),
)


class _Task(NamedTuple):
    """Needles in document order, which of them hold the answer, the question and its gold answers."""

    needles: list[str]
    asked: list[str]
    question: str
    answers: tuple[str, ...]


def needle_samples(kind: str, num: int, seed: int, num_tokens: int) -> list[Sample]:
    """Returns `num` samples of a kind over about `num_tokens` document tokens; the first ones do not depend on `num`."""
    made = []
    for i in range(num):
        rng = random.Random(f"{kind}:{num_tokens}-{seed}-{i}")
        task = KINDS[kind](rng)
        hay = haystack(rng, num_tokens, task.needles)
        supporting = tuple((place, needle) for needle, place in zip(task.needles, hay.places, strict=True) if needle in task.asked)
        made.append(Sample(f"{kind}:{num_tokens}/{i}", task.question, task.answers, hay.chunks, supporting))
    return made


def _multi_value(rng: random.Random) -> _Task:
    keys, values = _keys(rng, 1 + NUM_OTHERS), _numbers(rng, NUM_ASKED + NUM_OTHERS)
    pairs = [(keys[0], value) for value in values[:NUM_ASKED]] + list(zip(keys[1:], values[NUM_ASKED:], strict=True))
    rng.shuffle(pairs)
    found = [value for key, value in pairs if key == keys[0]]
    return _Task(
        [_fact(*pair) for pair in pairs],
        [_fact(keys[0], value) for value in found],
        f"Which access numbers are filed for {keys[0]}? Name all {NUM_ASKED}, separated by commas.",
        # Any order is right; the first one is that of the document.
        tuple(", ".join(order) for order in permutations(found)),
    )


def _multi_query(rng: random.Random) -> _Task:
    keys, values = _keys(rng, NUM_ASKED + NUM_OTHERS), _numbers(rng, NUM_ASKED + NUM_OTHERS)
    pairs = list(zip(keys, values, strict=True))
    asked = pairs[:NUM_ASKED]
    shuffled = rng.sample(pairs, len(pairs))
    *names, last = (key for key, _ in asked)
    return _Task(
        [_fact(*pair) for pair in shuffled],
        [_fact(*pair) for pair in asked],
        f"Which access numbers are filed for {', '.join(names)} and {last}? Name them in this order, separated by commas.",
        (", ".join(value for _, value in asked),),
    )


def _variable_tracking(rng: random.Random) -> _Task:
    variables = _variables(rng, 2 * CHAIN)
    first, other = variables[:CHAIN], variables[CHAIN:]
    value, other_value = _numbers(rng, 2)
    asked, decoys = _chain(first, value), _chain(other, other_value)
    needles: list[str] = []
    rest = [asked, decoys]
    while any(rest):
        # Both chains keep their order: a variable is assigned after the one it takes its value from.
        needles.append(rng.choice([chain for chain in rest if chain]).pop(0))
    question = f"Which variables hold the value {value}, directly or through other variables? Name all {CHAIN}, separated by commas."
    return _Task(needles, _chain(first, value), question, (", ".join(first),))


KINDS: Mapping[str, Callable[[random.Random], _Task]] = {
    "ruler-mv": _multi_value,
    "ruler-mq": _multi_query,
    "ruler-vt": _variable_tracking,
}


def _fact(key: str, value: str) -> str:
    return f"One access number filed for {key} is {value}."


def _chain(variables: list[str], value: str) -> list[str]:
    sources = [value, *(f"VAR {name}" for name in variables)]
    return [f"VAR {name} = {source}." for name, source in zip(variables, sources, strict=False)]


def _keys(rng: random.Random, num: int) -> list[str]:
    return ["-".join(parts) for parts in zip(*(rng.sample(words, num) for words in _WORDS), strict=True)]


def _numbers(rng: random.Random, num: int) -> list[str]:
    return [str(n) for n in rng.sample(range(10_000, 100_000), num)]


def _variables(rng: random.Random, num: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < num:
        names["".join(rng.choices(string.ascii_uppercase, k=5))] = None
    return list(names)
