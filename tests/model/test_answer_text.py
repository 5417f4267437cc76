"""The text of an answer as it grows: byte by byte, it never changes what stood there before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chat.stream import Pieces
from engine.model.answer_text import answer_text
from engine.model.tiny import byte_tokenizer

WORDS = ("▁hello", "s", "▁")


@pytest.fixture(scope="module")
def fallback():
    """A tokenizer as Llama 2's: words, and bytes written out for all else."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]
    vocab = {name: i for i, name in enumerate(names)}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True, unk_token="<unk>"))
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    backend.add_special_tokens([AddedToken(name, special=True) for name in names[:3]])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def ids_of(parts):
    """Returns ids of the fallback tokenizer: bytes one by one, words by their place in WORDS."""
    return [token for part in parts for token in ([3 + byte for byte in part] if isinstance(part, bytes) else [259 + part])]


def streamed(tokenizer, ids):
    """Returns what is told of an answer that comes token by token, and its text."""
    told = []
    pieces = Pieces(told.append)
    for end in range(1, len(ids) + 1):
        pieces.grow(answer_text(tokenizer, ids[:end]))
    text = answer_text(tokenizer, ids)
    pieces.end(text)
    return "".join(told), text


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["😀😃".encode()], "😀😃"),
        (["😀😃".encode()[:-2]], "😀\ufffd"),
        (["日本".encode()[:-1]], "日\ufffd"),
        (["😀".encode() + b"\xff", 0], "😀\ufffd hello"),
        ([0, "日".encode()[:2], 0, 1], "hello\ufffd hellos"),
        ([0, 1], "hellos"),
    ],
    ids=lambda value: ascii(value),
)
def test_a_broken_character_takes_no_whole_one_with_it(fallback, parts, expected):
    assert streamed(fallback, ids_of(parts)) == (expected, expected)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.binary(min_size=1, max_size=3), st.sampled_from(["é".encode(), "😀".encode()]), st.integers(0, 2)), max_size=8)
)
def test_what_was_told_joins_to_the_answer(fallback, parts):
    told, text = streamed(fallback, ids_of(parts))
    assert told == text


def test_other_tokenizers_decode_as_ever():
    tokenizer = byte_tokenizer()
    ids = [*"Grüße <0xFF> 😀".encode(), 258]
    assert answer_text(tokenizer, ids) == tokenizer.decode(ids, skip_special_tokens=True) == "Grüße <0xFF> 😀"
    assert streamed(tokenizer, list("😀😃".encode()[:-2])) == ("😀\ufffd", "😀\ufffd")
