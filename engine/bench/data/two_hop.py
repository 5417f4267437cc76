"""Generated two-hop questions over invented entities: the first fact leads to a second one in another passage."""

import random
from typing import NamedTuple

from engine.bench.data.haystack import haystack
from engine.bench.data.sample import Sample

NUM_CHAINS = 5


class _Relation(NamedTuple):
    """Sentences of both hops, subject -> bridge -> answer, and the question that names the subject alone."""

    first: str
    second: str
    question: str


_RELATIONS = (
    _Relation(
        "{subject} was painted by {bridge}.",
        "{bridge} grew up in the town of {answer}.",
        "In which town did the painter of {subject} grow up?",
    ),
    _Relation(
        "{subject} was restored by {bridge}.",
        "{bridge} learned the trade at the school of {answer}.",
        "At which school did the restorer of {subject} learn the trade?",
    ),
    _Relation(
        "{subject} belongs to {bridge}.",
        "{bridge} lives on the island of {answer}.",
        "On which island does the owner of {subject} live?",
    ),
    _Relation(
        "{subject} was discovered by {bridge}.",
        "{bridge} is buried in the village of {answer}.",
        "In which village is the discoverer of {subject} buried?",
    ),
    _Relation(
        "{subject} was commissioned by {bridge}.",
        "{bridge} governed the province of {answer}.",
        "Which province did the patron of {subject} govern?",
    ),
)
_ADJECTIVES = ("Grey", "Quiet", "Burning", "Northern", "Hidden", "Golden", "Broken", "Distant")
_NOUNS = ("Ferry", "Orchard", "Staircase", "Lantern", "Harvest", "Mirror", "Shepherd", "Window")
_STARTS = (
    *("Bel", "Cor", "Dal", "Fen", "Hal", "Jor", "Kel", "Lum", "Mar", "Nev", "Or", "Pel"),
    *("Ris", "Sol", "Tar", "Vel", "Wen", "Yar", "Zim", "Ash", "Bru", "Cal", "Dun", "Esk"),
)
_ENDS = ("dane", "grith", "holm", "ika", "lund", "mira", "nesse", "quor", "rath", "stow", "tova", "wick")


def two_hop_samples(num: int, seed: int, num_tokens: int) -> list[Sample]:
    """Returns `num` samples over about `num_tokens` document tokens; the first ones do not depend on `num`.

    Both facts of the question are supporting spans; other chains of the same relation stand beside them.
    """
    return [_sample(random.Random(f"two-hop:{num_tokens}-{seed}-{i}"), f"two-hop:{num_tokens}/{i}", num_tokens) for i in range(num)]


def _sample(rng: random.Random, sample_id: str, num_tokens: int) -> Sample:
    relation = rng.choice(_RELATIONS)
    names = iter([a + b for a, b in zip(rng.sample(_STARTS, 4 * NUM_CHAINS), _repeated(rng, 4 * NUM_CHAINS), strict=True)])
    chains = [
        {"subject": f"The {a} {b} of {next(names)}", "bridge": f"{next(names)} {next(names)}", "answer": next(names)}
        for a, b in zip(rng.sample(_ADJECTIVES, NUM_CHAINS), rng.sample(_NOUNS, NUM_CHAINS), strict=True)
    ]
    needles = [text.format(**chain) for chain in chains for text in (relation.first, relation.second)]
    asked, places = needles[:2], set[str]()
    while len(places) < 2:
        # Drawn again where both facts came to stand in one passage: then one hop would do.
        rng.shuffle(needles)
        hay = haystack(rng, num_tokens, needles)
        supporting = tuple((place, needle) for needle, place in zip(needles, hay.places, strict=True) if needle in asked)
        places = {place for place, _ in supporting}
    question = relation.question.format(subject="t" + chains[0]["subject"][1:])
    return Sample(sample_id, question, (chains[0]["answer"],), hay.chunks, supporting)


def _repeated(rng: random.Random, num: int) -> list[str]:
    return [end for _ in range(-(-num // len(_ENDS))) for end in rng.sample(_ENDS, len(_ENDS))][:num]
