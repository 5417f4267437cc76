"""Finds samples by the name of their set or the path of a file."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from engine.bench.data.generated import generated_samples
from engine.bench.data.hub import HUB_SETS, read_hub
from engine.bench.data.jsonl import read_jsonl
from engine.bench.data.needles import KINDS, needle_samples
from engine.bench.data.passages import Packing
from engine.bench.data.sample import Sample
from engine.bench.data.two_hop import two_hop_samples
from engine.errors import BadRequest
from engine.scenarios import load_scenarios
from engine.types import Chunk

NUM_GENERATED = 20
DEFAULT_TOKENS, MIN_TOKENS, MAX_TOKENS = 2_400, 600, 200_000
# num, seed and about how many document tokens -> samples.
_SIZED: Mapping[str, Callable[[int, int, int], list[Sample]]] = {
    **{kind: lambda num, seed, tokens, kind=kind: needle_samples(kind, num, seed, tokens) for kind in KINDS},
    "two-hop": two_hop_samples,
}


class LoadedSet(NamedTuple):
    """Samples, and one sentence for each line of their file that was left out."""

    samples: list[Sample]
    bad_lines: tuple[str, ...] = ()


def set_names() -> tuple[str, ...]:
    """Returns the sets that need no file; those with a length take it as in "ruler-mq:2400"."""
    return ("scenarios", "generated", *_SIZED, *HUB_SETS)


def load_samples(source: str, num: int, seed: int = 0, with_spans: bool = False) -> list[Sample]:
    """Returns `num` samples of a set. Raises BadRequest with one sentence, also for the first bad line of a file."""
    return load_set(source, num, seed, with_spans=with_spans).samples


def load_set(
    source: str,
    num: int | None,
    seed: int = 0,
    *,
    with_spans: bool = False,
    skip_bad: bool = False,
    packing: Packing = Packing(),  # noqa: B008 - frozen
    skip: int = 0,
) -> LoadedSet:
    """Returns samples of a set by name or JSONL path. Raises BadRequest with one sentence.

    Scenarios are taken in turn (one question of each, then the next); files and sets of the hub are shuffled by the seed.

    Args:
        num: how many; None takes all there are, 20 of a generated set.
        with_spans: take only samples whose answer spans are known.
        skip_bad: leave out lines of a file that are no samples instead of stopping at the first.
        packing: how short passages of files and of the hub are joined to chunks.
        skip: samples at the front of the order that are left out, so that what was tuned on them is measured on others.
    """
    if num is not None and num < 1:
        raise BadRequest(f"The number of samples is {num}; it must be at least 1.")
    if skip < 0:
        raise BadRequest(f"{skip} samples are to be skipped; the number must be 0 or more.")
    if skip and num is not None:
        whole = load_set(source, skip + num, seed, with_spans=with_spans, skip_bad=skip_bad, packing=packing)
        return LoadedSet(whole.samples[skip:], whole.bad_lines)
    name, _, length = source.partition(":")
    if source == "generated":
        return LoadedSet(generated_samples(num or NUM_GENERATED, seed))
    if name in _SIZED:
        return LoadedSet(_SIZED[name](num or NUM_GENERATED, seed, _tokens(source, length)))
    bad_lines: tuple[str, ...] = ()
    if source == "scenarios":
        found = scenario_samples()
    elif source in HUB_SETS:
        samples = read_hub(source, HUB_SETS[source], packing, seed)
        found = list(islice((s for s in samples if s.supporting or not with_spans), num))
    else:
        found, bad_lines = _read_file(source, packing, skip_bad)
        random.Random(seed).shuffle(found)
    if with_spans:
        found = [sample for sample in found if sample.supporting]
    if (num or 1) > len(found):
        kind = "samples with answer spans" if with_spans else "samples"
        raise BadRequest(f"{num or 'All'} {kind} are asked for; {source} has {len(found)}.")
    return LoadedSet(found[:num], bad_lines)


def scenario_samples() -> list[Sample]:
    """Returns the answerable questions of all scenarios, one of each scenario in turn."""
    columns = []
    for scenario in load_scenarios().values():
        columns.append(
            [
                Sample(
                    f"{scenario.name}/{q.id}",
                    q.question,
                    q.answers,
                    scenario.chunks(),
                    tuple((s.passage, s.span) for s in q.supporting),
                    scenario.name,
                )
                for q in scenario.questions
                if q.answerable
            ]
        )
    return [sample for turn in zip_longest(*columns) for sample in turn if sample is not None]


def padded(samples: Sequence[Sample], num_tokens: Callable[[Chunk], int], least: int, seed: int = 0) -> list[Sample]:
    """Returns the samples with chunks of the others mixed in until each has at least `least` document tokens.

    Args:
        num_tokens: length of a chunk in the model's tokens.
    """
    made = []
    for i, sample in enumerate(samples):
        rng = random.Random(f"{seed}-{i}")
        others = [replace(c, chunk_id=f"{j}/{c.chunk_id}") for j, other in enumerate(samples) if j != i for c in other.chunks]
        rng.shuffle(others)
        chunks, texts = list(sample.chunks), {chunk.text for chunk in sample.chunks}
        while sum(map(num_tokens, chunks)) < least and others:
            chunk = others.pop()
            if chunk.text not in texts:
                chunks.append(chunk)
        rng.shuffle(chunks)
        made.append(replace(sample, chunks=tuple(chunks)))
    return made


def _read_file(source: str, packing: Packing, skip_bad: bool) -> tuple[list[Sample], tuple[str, ...]]:
    path = Path(source)
    if not path.is_file():
        raise BadRequest(f"There is no data file {source!r}; known sets are {', '.join(set_names())}, or give a JSONL path.")
    return read_jsonl(path, packing, skip_bad)


def _tokens(source: str, length: str) -> int:
    if not length:
        if source.endswith(":"):
            raise BadRequest(f"The length in {source!r} is empty; write the number of document tokens, as in ruler-mq:2400.")
        return DEFAULT_TOKENS
    if not (length.isascii() and length.isdigit()) or not MIN_TOKENS <= int(length) <= MAX_TOKENS:
        raise BadRequest(f"The length in {source!r} must be a whole number of document tokens from {MIN_TOKENS} to {MAX_TOKENS:,}.")
    return int(length)
