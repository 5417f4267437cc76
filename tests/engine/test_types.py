"""Requests refuse bad values with one sentence; budgets follow the paper's rule."""

import math

import pytest

from engine.errors import BadRequest
from engine.types import Chunk, FusionRequest, budget

CHUNK = Chunk("c1", "Title", "Some text.")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": "  "}, "question is empty"),
        ({"question": "x" * 5_000}, "5,000 characters"),
        ({"chunks": ()}, "No chunk"),
        ({"chunks": (CHUNK, CHUNK)}, "listed twice"),
        ({"ratio": -0.1}, "-0.1"),
        ({"ratio": 1.5}, "1.5"),
        ({"ratio": math.nan}, "nan"),
        ({"ratio": math.inf}, "inf"),
        ({"temperature": math.nan}, "temperature"),
        ({"max_new_tokens": 0}, "0 tokens"),
        ({"repeats": 0}, "repeats"),
        ({"chunk_context": "elsewhere"}, "known ones are: system, alone"),
    ],
)
def test_a_bad_value_is_named_with_its_rule(change, words):
    good = {"question": "Why?", "chunks": (CHUNK,)}
    with pytest.raises(BadRequest, match=words):
        FusionRequest(**(good | change))


def test_a_chunk_without_text_is_refused():
    with pytest.raises(BadRequest, match="no text"):
        Chunk("c1", "Title", " \n ")


@pytest.mark.parametrize(
    ("ratio", "num", "expected"), [(0.0, 100, 0), (0.001, 100, 1), (0.3, 10, 3), (0.29, 10, 2), (1.0, 7, 7), (0.1, 30, 3), (0.5, 0, 0)]
)
def test_budget_is_the_floor_but_at_least_one(ratio, num, expected):
    assert budget(ratio, num) == expected
