"""One spelling of letters for the search: texts and queries are folded alike, so that accents, ligatures and widths hide nothing."""

import re
import unicodedata

# Shape letters without parting words.
_JOINERS = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
# Accents of Latin, Greek and Cyrillic, points of Hebrew, vowels and hamzas of Arabic, and the stroke that only stretches a word.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640]")
# Letters that no decomposition takes apart, Arabic ones that are written either way, and Persian ones typed on an Arabic keyboard.
_LETTERS = str.maketrans(
    {
        **{"ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ı": "i", "ħ": "h", "ŋ": "n"},
        **{"ٱ": "ا", "ة": "ه", "ى": "ي", "ی": "ي", "ک": "ك", "ہ": "ه"},
    }
)
# The article, alone or behind a letter that is written with it.
_ARTICLE = re.compile(r"(?<!\w)[وبكف]?ال(?=[\u0621-\u064a]{3})")
_DIGITS = re.compile(r"[^\D0-9]")


def fold(text: str) -> str:
    """Returns a text in small letters without accents, joiners, ligatures and odd widths, its digits 0 to 9."""
    plain = unicodedata.normalize("NFKD", _JOINERS.sub("", text)).casefold()
    plain = unicodedata.normalize("NFC", _MARKS.sub("", plain)).translate(_LETTERS)
    return _ARTICLE.sub("", _DIGITS.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain))
