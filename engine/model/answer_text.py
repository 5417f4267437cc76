"""The text of an answer's tokens, so that more tokens never change what stood there before them."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

UNKNOWN_CHARACTER = "\ufffd"
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def answer_text(tokenizer: Any, ids: Sequence[int]) -> str:
    """Returns the text of token ids, special ones left out.

    Tokenizers that write rare characters byte by byte (`<0xF0>`) give up every character of a run of bytes for one that is not
    whole; here only the broken one is replaced.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(ids), skip_special_tokens=True)
    mended = [token for is_byte, run in groupby(tokens, _is_byte) for token in (_mended(list(run)) if is_byte else run)]
    decoder = tokenizer.backend_tokenizer.decoder
    if mended == tokens or decoder is None:
        return str(tokenizer.decode(list(ids), skip_special_tokens=True))
    return str(decoder.decode(mended))


def _is_byte(token: str) -> bool:
    return _BYTE.fullmatch(token) is not None


def _mended(run: list[str]) -> list[str]:
    """Returns a run of byte tokens, each part of it that is no character replaced by one token that says so."""
    raw, kept, start = bytes(int(token[3:5], 16) for token in run), list[str](), 0
    while start < len(raw):
        try:
            raw[start:].decode()
        except UnicodeDecodeError as error:
            kept += [*run[start : start + error.start], UNKNOWN_CHARACTER]
            start += error.end
        else:
            return kept + run[start:]
    return kept
