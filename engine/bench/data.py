"""Samples to measure on: bundled scenarios, generated fact sheets, and JSONL files of questions with passages."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from engine.errors import BadRequest
from engine.scenarios import load_scenarios
from engine.types import Chunk

MIN_WORDS, MAX_WORDS = 120, 300


@dataclass(frozen=True, slots=True)
class Sample:
    """A question over chunks with gold answers; supporting: (chunk_id, exact span) pairs that hold an answer."""

    sample_id: str
    question: str
    answers: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    supporting: tuple[tuple[str, str], ...]
    scenario: str | None = None


def load_samples(source: str, num: int, seed: int = 0, with_spans: bool = False) -> list[Sample]:
    """Returns `num` samples of "scenarios", "generated" or a JSONL path. Raises BadRequest with one sentence.

    Scenarios are taken in turn (one question of each, then the next); files are shuffled by the seed.

    Args:
        with_spans: take only samples whose answer spans are known.
    """
    if num < 1:
        raise BadRequest(f"The number of samples is {num}; it must be at least 1.")
    if source == "scenarios":
        found = scenario_samples()
    elif source == "generated":
        return generated_samples(num, seed)
    else:
        found = jsonl_samples(Path(source))
        random.Random(seed).shuffle(found)
    if with_spans:
        found = [sample for sample in found if sample.supporting]
    if num > len(found):
        kind = "samples with answer spans" if with_spans else "samples"
        raise BadRequest(f"{num} {kind} are asked for; {source} has {len(found)}.")
    return found[:num]


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


def jsonl_samples(path: Path) -> list[Sample]:
    """Returns the samples of a JSONL file: id, question, answers, passages[{title, text, is_supporting}].

    Raises BadRequest naming file and line of the first bad one.
    """
    if not path.is_file():
        raise BadRequest(f"There is no data file {str(path)!r}; known sets are scenarios and generated, or give a JSONL path.")
    samples = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    samples.append(_sample(json.loads(line)))
                except (json.JSONDecodeError, KeyError, TypeError, BadRequest) as error:
                    raise BadRequest(f"{path}, line {number}: not a sample ({error}); mend or remove the line.") from None
    return samples


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


def _sample(row: dict[str, object]) -> Sample:
    chunks, supporting = [], []
    for i, group in enumerate(_packed(row["passages"])):
        chunk_id = f"p{i + 1:02d}"
        text = "\n\n".join(p["text"] for p in group)
        chunks.append(Chunk(chunk_id, group[0]["title"], text))
        marked = " ".join(p["text"] for p in group if p.get("is_supporting"))
        supporting += [(chunk_id, answer) for answer in dict.fromkeys(row["answers"]) if answer and answer in marked]
    return Sample(str(row["id"]), row["question"], tuple(row["answers"]), tuple(chunks), tuple(supporting))


def _packed(passages: list[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    """Yields neighbouring passages joined to at least MIN_WORDS where that does not exceed MAX_WORDS."""
    group: list[dict[str, object]] = []
    words = 0
    for passage in passages:
        size = len(passage["text"].split())
        if group and (words >= MIN_WORDS or words + size > MAX_WORDS):
            yield group
            group, words = [], 0
        group.append(passage)
        words += size
    if group:
        yield group


def generated_samples(num: int, seed: int = 0, num_chunks: int = 12, facts: int = 7) -> list[Sample]:
    """Returns samples of invented registers: every chunk lists facts of one depot, one fact of one is asked for."""
    return [_generated(random.Random(f"{seed}-{i}"), i, num_chunks, facts) for i in range(num)]


_PLACES = (
    *("Ardel", "Brone", "Calvis", "Dunmor", "Estry", "Falken", "Gorsey", "Hallin"),
    *("Istrel", "Jorvan", "Kelmis", "Lorne", "Maddel", "Norrin", "Ostle", "Penwick"),
)
_THINGS = (
    ("the gate code", "{n}"),
    ("the warden", "{a} {b}"),
    ("the colour of the flag", "{c}"),
    ("the radio channel", "channel {n}"),
    ("the nearest harbour", "Port {b}"),
    ("the storage hall", "hall {n}"),
    ("the day of delivery", "the {d}th of {m}"),
    ("the boat on duty", "the {b} Star"),
)
_FIRST = ("Ines", "Tomas", "Greta", "Olaf", "Mira", "Jonas", "Petra", "Anton", "Vera", "Lukas")
_LAST = ("Wendel", "Marrow", "Castor", "Quill", "Tarrant", "Osk", "Bellamy", "Thorne", "Kessel", "Harrow")
_COLOURS = ("crimson", "amber", "violet", "teal", "ivory", "indigo")
_MONTHS = ("March", "April", "June", "August", "October", "November")


def _generated(rng: random.Random, index: int, num_chunks: int, facts: int) -> Sample:
    asked_chunk, asked_fact = rng.randrange(num_chunks), rng.randrange(facts)
    places, chunks, target = rng.sample(_PLACES, num_chunks), [], ("", "", "")
    for i, place in enumerate(places):
        sentences = [f"This sheet describes the depot of {place} and is read out at every change of the watch."]
        for j, (thing, pattern) in enumerate(rng.sample(_THINGS, facts)):
            value = pattern.format(
                n=rng.randrange(100, 9999),
                a=rng.choice(_FIRST),
                b=rng.choice(_LAST),
                c=rng.choice(_COLOURS),
                d=rng.randrange(4, 20),
                m=rng.choice(_MONTHS),
            )
            sentences.append(f"At {place}, {thing} is {value}, as entered in the book of the depot and checked by two members of the crew.")
            if (i, j) == (asked_chunk, asked_fact):
                target = (f"At {place}, what is {thing}?", value, f"{thing} is {value}")
        chunks.append(Chunk(f"g{i + 1:02d}", f"Depot of {place}", " ".join(sentences)))
    question, answer, span = target
    return Sample(f"generated/{index}", question, (answer,), tuple(chunks), ((f"g{asked_chunk + 1:02d}", span),))
