"""The sets that a model's tables are fitted on, kept apart from what the model is measured with afterwards.

Knows nothing of what is fitted.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.bench.data import Sample, load_samples, load_set, padded
from engine.errors import BadRequest
from engine.types import Chunk


class TuningSet(NamedTuple):
    """Samples of one source; `label` names it with n and what was done to it."""

    label: str
    samples: tuple[Sample, ...]


def add_arguments(parser: argparse.ArgumentParser, num: int) -> None:
    """Adds the options that say which model and which samples."""
    parser.add_argument("--model", help="bundled, a hub id or a local path; FUSESCOPE_MODEL otherwise")
    parser.add_argument("--data", default="generated", help="comma-separated sets, each of equal weight: generated, scenarios, JSONL paths")
    parser.add_argument("--n", type=int, default=num, help="samples of each set; samples that share no passage come first")
    parser.add_argument(
        "--skip",
        default="0",
        help="leave out the first N samples of each JSONL file's shuffled order and every sample that shares a passage with them, "
        "so that these stay fresh for measuring; one number, or one for each set",
    )
    parser.add_argument(
        "--pad-to", default="0", help="mix in chunks of other samples up to this many document tokens; one number, or one for each set"
    )
    parser.add_argument("--most-tokens", type=int, default=0, help="take only samples of at most this many document tokens; 0 takes all")
    parser.add_argument("--seed", type=int, default=0)


def load_sets(args: argparse.Namespace, num_tokens: Callable[[Chunk], int]) -> tuple[TuningSet, ...]:
    """Returns the sets that the options ask for, of samples whose passages hold the answer. Raises BadRequest with one sentence.

    Args:
        num_tokens: length of a chunk in the model's tokens.
    """
    sources = args.data.split(",")
    skips, pads = _numbers("--skip", args.skip, len(sources)), _numbers("--pad-to", args.pad_to, len(sources))
    made = []
    for source, skip, pad in zip(sources, skips, pads, strict=True):
        samples = _taken(source, skip, args, num_tokens)
        label = f"{Path(source).stem} (n={len(samples)}{f', chunks mixed to {pad:,} document tokens' if pad else ''})"
        made.append(TuningSet(label, tuple(padded(samples, num_tokens, pad, args.seed) if pad else samples)))
    return tuple(made)


def held_out(samples: Sequence[Sample], skip: int) -> list[Sample]:
    """Returns the samples behind the first `skip` that share no passage with any of these."""
    seen = {passage for sample in samples[:skip] for passage in passages(sample)}
    return [sample for sample in samples[skip:] if not seen & passages(sample)]


def spread(samples: Sequence[Sample]) -> list[Sample]:
    """Returns the samples so that those come first whose passages fewer samples before them have: the most independent ones."""
    earlier: dict[str, int] = {}
    counts = []
    for sample in samples:
        own = passages(sample)
        counts.append(max(earlier.get(passage, 0) for passage in own))
        for passage in own:
            earlier[passage] = earlier.get(passage, 0) + 1
    return [samples[i] for i in sorted(range(len(samples)), key=counts.__getitem__)]


def passages(sample: Sample) -> set[str]:
    """Returns the texts that a sample's chunks were packed from."""
    return {passage for chunk in sample.chunks for passage in chunk.text.split("\n\n")}


def _taken(source: str, skip: int, args: argparse.Namespace, num_tokens: Callable[[Chunk], int]) -> list[Sample]:
    if not Path(source).is_file():
        return load_samples(source, args.n, args.seed, with_spans=True)
    if args.n < 1:
        raise BadRequest(f"The number of samples is {args.n}; it must be at least 1.")
    left = [sample for sample in held_out(load_set(source, None, args.seed).samples, skip) if sample.supporting]
    if args.most_tokens:
        left = [sample for sample in left if sum(map(num_tokens, sample.chunks)) <= args.most_tokens]
    if len(left) < args.n:
        raise BadRequest(
            f"{args.n} samples with answer spans are asked for; {source} has {len(left)} with --skip {skip} and --most-tokens "
            f"{args.most_tokens}, so lower --n or change these."
        )
    return spread(left)[: args.n]


def _numbers(option: str, text: str, count: int) -> list[int]:
    parts = str(text).split(",")
    if not all(part.isascii() and part.isdigit() for part in parts) or len(parts) not in (1, count):
        raise BadRequest(f"{option} is {text!r}; give one whole number, or {count} separated by commas, one for each set of --data.")
    return [int(part) for part in (parts * count if len(parts) == 1 else parts)]
