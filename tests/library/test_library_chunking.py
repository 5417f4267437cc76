"""Sentences, and chunks of them: within the budget, nothing lost, the same for the same text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_samples import make_text

from engine.library.chunking import cut
from engine.library.limits import LibraryLimits
from engine.library.parse.base import ParsedText, Passage
from engine.library.sentences import split_sentences, summary_of


def words(text: str) -> int:
    return len(text.split())


def parsed(*texts: str, heading: str = "", unit: str = "", is_table: bool = False, title: str = "") -> ParsedText:
    passages = tuple(Passage(heading, text, i) for i, text in enumerate(texts, 1))
    return ParsedText(title, unit, len(texts), is_table, passages)


def limits(budget: int, overlap: int = 1) -> LibraryLimits:
    return LibraryLimits(chunk_tokens=budget, overlap_sentences=overlap)


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        (
            "Dr. Quill met J. R. Smith at 3.15 p.m. in St. Orrin. He left.",
            ["Dr. Quill met J. R. Smith at 3.15 p.m. in St. Orrin.", "He left."],
        ),
        ('She said "Stop." He did.', ['She said "Stop."', "He did."]),
        ("See no. 5 of vol. 2. Then go on.", ["See no. 5 of vol. 2.", "Then go on."]),
        ("The answer is no. The lamp was out.", ["The answer is no.", "The lamp was out."]),
        ("The ca. 40 houses, e.g. mine. etc. and so on.", ["The ca. 40 houses, e.g. mine. etc. and so on."]),
        ("灯塔建于1871年。它很高！“真的吗？”是的", ["灯塔建于1871年。", "它很高！", "“真的吗？”", "是的"]),
        ("दीपक जला। रात थी।", ["दीपक जला।", "रात थी।"]),
        ("هل جاء؟ نعم. ثم ذهب", ["هل جاء؟", "نعم.", "ثم ذهب"]),
        ("one\nline of\ntext. And\nmore.", ["one line of text.", "And more."]),
        ("   \n ", []),
    ],
)
def test_sentences_end_where_a_reader_would_say(text, sentences):
    assert split_sentences(text) == sentences


@given(st.text(max_size=400))
@settings(max_examples=150, deadline=None)
def test_sentences_lose_nothing(text):
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_a_summary_is_the_first_sentences_that_fit():
    assert summary_of("The lamp was lit. It burns. " + "Word " * 60 + ".") == "The lamp was lit. It burns."
    long = summary_of("word " * 100)
    assert len(long) <= 161 and long.endswith("word…")
    assert len(summary_of("x" * 1000)) == 161


@pytest.mark.parametrize("budget", [16, 40, 160])
@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_chunks_keep_the_budget_and_lose_nothing(budget, overlap):
    text = make_text(5, 120)
    chunks = list(cut(parsed(text.split("\n\n")[0], *text.split("\n\n")[1:]), words, limits(budget, overlap)))
    assert all(words(chunk.text) <= budget for chunk in chunks)
    sentences = split_sentences(text)
    assert all(any(sentence in chunk.text.replace("\n", " ") for chunk in chunks) or words(sentence) > budget for sentence in sentences)
    assert "".join(sentences[-1].split()[-1]) in chunks[-1].text


def test_neighbours_share_a_sentence_and_no_chunk_is_only_repetition():
    sentences = [f"Sentence {i} has six words here." for i in range(12)]
    chunks = [chunk.text for chunk in cut(parsed(" ".join(sentences)), words, limits(18, 1))]
    assert chunks[0] == " ".join(sentences[:3])
    assert chunks[1] == " ".join(sentences[2:5])
    assert chunks[-1].endswith(sentences[-1]) and len(set(chunks)) == len(chunks)


def test_a_sentence_above_the_budget_is_cut_at_words_or_inside_one():
    spaced = [chunk.text for chunk in cut(parsed("word " * 1000), words, limits(50, 0))]
    assert " ".join(spaced).split() == ["word"] * 1000 and all(words(text) <= 50 for text in spaced)
    unspaced = [chunk.text for chunk in cut(parsed("x" * 5000), len, limits(160, 0))]
    assert "".join(unspaced) == "x" * 5000 and all(len(text) < 160 for text in unspaced)


def test_titles_come_from_the_text_and_chunks_keep_to_their_heading():
    text = ParsedText(
        "Handbook", "page", 3, False, (Passage("", "First.", 1), Passage("Lamps", "Second.", 1), Passage("Lamps", "Third.", 3))
    )
    chunks = list(cut(text, words, limits(50)))
    assert [(c.title, c.text, c.place) for c in chunks] == [("Handbook", "First.", "page 1"), ("Lamps", "Second.\nThird.", "pages 1-3")]


def test_rows_stay_whole_and_are_not_repeated():
    chunks = list(cut(parsed(*[f"name: N{i}. Dr; year: {i}." for i in range(9)], unit="row", is_table=True), words, limits(16)))
    assert [chunk.place for chunk in chunks] == ["rows 1-3", "rows 4-6", "rows 7-9"]


def test_the_same_text_has_the_same_hashes_and_a_change_is_local():
    paragraphs = make_text(7, 200).split("\n\n")
    first = [chunk.text_hash for chunk in cut(parsed(*paragraphs), words, limits(60))]
    again = [chunk.text_hash for chunk in cut(parsed(*paragraphs), words, limits(60))]
    assert first == again and len(set(first)) == len(first)
    changed = [chunk.text_hash for chunk in cut(parsed("A new beginning. " + paragraphs[0], *paragraphs[1:]), words, limits(60))]
    assert len(set(first) & set(changed)) > 0.7 * len(first)
    other_title = [chunk.text_hash for chunk in cut(parsed(*paragraphs, title="Other"), words, limits(60))]
    assert not set(first) & set(other_title)
