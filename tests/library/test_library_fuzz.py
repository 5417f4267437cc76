"""Properties that hold for any name, any bytes and any text."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadDocument
from engine.library.chunking import cut
from engine.library.limits import MIB, LibraryLimits
from engine.library.parse.base import ParsedText, ParseLimits, clean, one_line
from engine.library.parse.child import parse_here
from engine.library.parse.kinds import KINDS, MAX_NAME_CHARS, kind_of, shown_name

LIMITS = ParseLimits(num_pages=20, num_rows=200, num_chars=5_000, unpacked_bytes=MIB, time_s=5, memory_bytes=512 * MIB)
SOME = settings(max_examples=120, deadline=None)
names = st.text(max_size=300) | st.text(alphabet="./\\:\0\n\u202ea b", max_size=60)
endings = st.sampled_from([*KINDS, "htm", "exe", ""])
# Pieces that mean something to a parser, and bytes that mean nothing.
pieces = st.lists(
    st.sampled_from(
        [b"<", b">", b"</p>", b"<p>", b"&amp;", b'"', b",", b";", b"\n", b"\r\n", b"\t", b"#", b"[a](b)", b"|", b"---", b"\xef\xbb\xbf"]
    )
    | st.binary(max_size=12)
    | st.text(max_size=12).map(lambda text: text.encode("utf-8", "surrogatepass")),
    max_size=60,
).map(b"".join)


@given(names)
@SOME
def test_a_shown_name_is_one_plain_short_line(name):
    shown = shown_name(name)
    assert 0 < len(shown) <= MAX_NAME_CHARS and shown == " ".join(shown.split()) and shown == shown_name(shown)
    assert not set("/\\\0\n\r") & set(shown) and not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in shown)


@given(st.text(max_size=200))
@SOME
def test_clean_text_stays_as_it_is_and_can_be_stored(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned and cleaned.encode() is not None
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Cn", "Co") and c not in "\n" for c in cleaned if c != " ")
    assert len(one_line(text)) <= 81 and "\n" not in one_line(text)


@given(names, endings, pieces)
@SOME
def test_any_bytes_have_a_kind_or_a_sentence(name, ending, data):
    try:
        assert kind_of(shown_name(f"{name}.{ending}"), data) in KINDS
    except BadDocument as refused:
        assert str(refused).endswith(".") and "\n" not in str(refused)


@given(st.sampled_from(["txt", "md", "csv", "html"]), pieces)
@SOME
def test_any_bytes_are_a_text_or_a_sentence(kind, data):
    try:
        kind_of(f"note.{kind}", data)
        parsed = parse_here(kind, data, LIMITS)
    except BadDocument as refused:
        assert str(refused).endswith(".") and "\n" not in str(refused)
        return
    assert parsed.passages and all(passage.text.strip() for passage in parsed.passages)
    check_chunks(parsed)


def check_chunks(parsed: ParsedText) -> None:
    limits = LibraryLimits(chunk_tokens=16, overlap_sentences=1)
    chunks = list(cut(parsed, lambda text: max(1, len(text.encode()) // 2), limits))
    assert chunks and all(chunk.text.strip() and chunk.summary for chunk in chunks)
    told = "".join("".join(chunk.text.split()) for chunk in chunks)
    assert all("".join(passage.text.split())[:1] in told for passage in parsed.passages)
