"""Stop texts, whatever the pieces in which an answer comes."""

from hypothesis import given
from hypothesis import strategies as st

from engine.serving.stops import StopFilter

LETTERS = st.text("ab\n", max_size=12)


def expected(text, stops):
    """Returns the text up to the stop text that is complete first."""
    for end in range(len(text) + 1):
        starts = [end - len(stop) for stop in stops if stop and text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)]
    return text


@given(pieces=st.lists(LETTERS, max_size=6), stops=st.lists(LETTERS, max_size=4))
def test_pieces_make_no_difference(pieces, stops):
    seen = StopFilter(stops)
    shown = "".join(seen.feed(piece) for piece in pieces)
    assert shown + ("" if seen.hit else seen.rest()) == expected("".join(pieces), stops)
    assert seen.hit == (expected("".join(pieces), stops) != "".join(pieces))


def test_what_cannot_become_a_stop_text_is_shown_at_once():
    seen = StopFilter(["END"])
    assert [seen.feed(piece) for piece in ("It w", "as E", "lk EN", "D no")] == ["It w", "as ", "Elk ", ""]
    assert seen.hit and seen.feed("more") == "" and seen.rest() == ""


def test_without_stop_texts_everything_is_shown_at_once():
    seen = StopFilter(["", ""])
    assert seen.feed("abc") == "abc" and not seen.hit and seen.rest() == ""
