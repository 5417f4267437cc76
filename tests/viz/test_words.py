"""Numbers are worded once and for all; text is made safe for plotly."""

import pytest

from viz.figures import words


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.314, "2.31 s"), (0.82, "0.82 s"), (0.084, "84 ms"), (0.0004, "0.4 ms"), (123.4, "123 s"), (float("nan"), "–"), (-1.5, "-1.50 s")],
)
def test_seconds(value, text):
    assert words.seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (101_900_000, "102 MB"), (3.4e12, "3400 GB")])
def test_size(value, text):
    assert words.size(value) == text


@pytest.mark.parametrize(("share", "text"), [(0.3, "30\u00a0%"), (0.004, "0.4\u00a0%"), (0, "0\u00a0%"), (1, "100\u00a0%")])
def test_percent(share, text):
    assert words.percent(share).replace(" ", "\u00a0") == text


def test_plain_leaves_no_tag_entity_or_tex():
    text = words.plain("<b>a</b> &amp; $x_i$\n<img src=x onerror=1>")
    assert "<" not in text and ">" not in text and "&amp;amp;" in text
    assert "$x" not in text and "⏎" in text


def test_shorten_is_quick_on_long_text_and_marks_the_cut():
    assert words.shorten("a  b\nc", 10) == "a b c"
    cut = words.shorten("x" * 5_000_000, 20)
    assert len(cut) == 20 and cut.endswith("…")
