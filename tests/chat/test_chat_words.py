"""Citations by shared words, and answers in pieces."""

import pytest

from engine.chat.citations import citations
from engine.chat.stream import Pieces
from engine.chat.types import Citation
from engine.types import Chunk

LAMP = Chunk("lamp", "", "The lamp of Merrow Point was lit in 1871 by Ada Quill.")
FERRY = Chunk("ferry", "", "No ferry runs on the feast of St. Orrin.")
KANJI = Chunk("kanji", "", "灯台は一八七一年に点灯された。")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It was lit in 1871 by Ada Quill, they say.", [Citation("lamp", "was lit in 1871 by Ada Quill", 7)]),
        ("WAS LIT, in 1871!", [Citation("lamp", "was lit in 1871", 4)]),
        ("Ada Quill", [Citation("lamp", "Ada Quill", 2)]),
        ("Orrin", [Citation("ferry", "Orrin", 1)]),
        ("Ada who?", []),
        (
            "On the feast of St. Orrin, the lamp of Merrow",
            [Citation("ferry", "on the feast of St. Orrin", 6), Citation("lamp", "The lamp of Merrow", 4)],
        ),
        ("一八七一年に", [Citation("kanji", "一八七一年に", 6)]),
        ("", []),
        ("…!", []),
    ],
)
def test_a_chunk_is_cited_for_its_longest_shared_run_of_words(answer, expected):
    assert list(citations(answer, (LAMP, FERRY, KANJI))) == expected


def test_a_turn_of_phrase_beside_a_long_quote_is_no_citation():
    other = Chunk("other", "", "The lamp of a ship.")
    cited = citations("The lamp of Merrow Point was lit in 1871 by Ada Quill.", (other, LAMP))
    assert [citation.chunk_id for citation in cited] == ["lamp"]


def test_pieces_join_to_the_answer_and_never_cut_a_character():
    told, text = [], "Vell — 灯台 🧩."
    pieces = Pieces(told.append)
    raw = text.encode()
    for end in range(1, len(raw) + 1):
        pieces.grow(raw[:end].decode(errors="replace"))
    pieces.end(text)
    assert "".join(told) == text and not any("\ufffd" in piece for piece in told) and len(told) == len(text)


def test_an_answer_that_ends_within_a_character_is_told_as_it_is():
    told = []
    pieces = Pieces(told.append)
    pieces.grow("So \ufffd")
    pieces.end("So \ufffd")
    assert told == ["So ", "\ufffd"]
