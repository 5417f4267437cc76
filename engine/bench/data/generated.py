"""Generated fact sheets: every chunk lists facts of one invented depot, one fact of one is asked for.

What a seed gives never changes: measured calibration tables were made with these samples.
"""

import random

from engine.bench.data.sample import Sample
from engine.types import Chunk


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
