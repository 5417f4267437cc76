"""Words of texts and of queries, for SQLite's FTS5. What a user types is words, never a search expression."""

import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby, pairwise

from engine.library.folding import fold

MAX_QUERY_WORDS = 64
MAX_WORD_CHARS = 100
# Below so many letters a word is no part of a compound that would say something.
MIN_PART_CHARS = 6
# Words of questions that say nothing of their subject, folded; in English, German, Spanish and French, less those that
# are a name of something in another of them. Left out unless there is no other.
_FUNCTION_WORDS = {
    *("a", "an", "and", "are", "at", "be", "by", "can", "did", "do", "does", "for", "from", "had", "has", "have", "how", "in", "is", "it"),
    *("its", "of", "on", "or", "that", "the", "their", "there", "this", "to", "was", "were", "what", "when", "where", "which", "who"),
    *("whom", "whose", "why", "with", "called", "der", "das", "dem", "ein", "eine", "einer", "ist", "sind", "waren"),
    *("und", "oder", "von", "wie", "wo", "wer", "wann", "warum", "welche", "welcher", "welches", "zu", "im", "mit", "el", "la", "los"),
    *("las", "un", "una", "y", "o", "es", "fue", "del", "al", "en", "por", "para", "que", "quien", "como", "donde"),
    *("cuando", "cual", "le", "les", "une", "et", "ou", "est", "sont", "du", "des", "dans", "qui", "quand", "quel"),
}
# Scripts that write no blanks between words, and Hangul, whose words carry their particles: each character is a word of the
# index, neighbours make a phrase.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1100-\u11ff\uac00-\ud7af\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_TOKENIZER = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"


def table_sql(table: str) -> str:
    """Returns the statement that makes a full-text table of titles and bodies."""
    return f"CREATE VIRTUAL TABLE {table} USING fts5(title, body, tokenize = '{_TOKENIZER}')"


def indexed(text: str) -> str:
    """Returns a text as the index takes it: folded, characters of unspaced scripts apart."""
    return _UNSPACED.sub(r" \1 ", fold(text))


def query_terms(query: str) -> tuple[str, ...]:
    """Returns the FTS5 phrases of a query, quoted; its first 64 different words count, () where it has none.

    Two neighbours of an unspaced script are one phrase, as one character says little.
    """
    words = _words(query[:200_000])
    terms: dict[str, None] = {}
    for word in [word for word in words if word not in _FUNCTION_WORDS] or words:
        for term in _phrases(word[:MAX_WORD_CHARS]):
            terms.setdefault(f'"{term}"')
            if len(terms) == MAX_QUERY_WORDS:
                return tuple(terms)
    return tuple(terms)


def part_of_compound(term: str) -> str:
    """Returns what a compound of the index that holds the term's word holds, "" where the word is too short or no single one.

    The index holds stems, so that the end of a longer word is left out.
    """
    word = term.strip('"')
    if len(word) < MIN_PART_CHARS or not word.isalpha():
        return ""
    return word[: max(MIN_PART_CHARS, len(word) - 2)]


def any_of(stems: Sequence[str]) -> str:
    """Returns the FTS5 expression that holds wherever a word begins with one of the stems; there is at least one."""
    quoted = [f'"{stem}" *' for stem in stems]
    return f"({' OR '.join(quoted)})"


def inverse_frequency(num_rows: int, num_hits: int) -> float:
    """Returns a term's weight in bm25 as FTS5 computes it (natural logarithm, never below 1e-6)."""
    weight = math.log((num_rows - num_hits + 0.5) / (num_hits + 0.5))
    return weight if weight > 0.0 else 1e-6


def _words(text: str) -> list[str]:
    """Returns runs of letters, digits and marks, folded."""
    letters = (c if c.isalnum() or unicodedata.category(c) in ("Mn", "Mc") else " " for c in fold(text))
    return "".join(letters).split()


def _phrases(word: str) -> list[str]:
    """Returns a word's phrases: itself, or the pairs of neighbours in what is written without blanks."""
    phrases = []
    for is_unspaced, run in groupby(word, key=lambda c: bool(_UNSPACED.match(c))):
        part = "".join(run)
        pairs = [f"{a} {b}" for a, b in pairwise(part)] if is_unspaced else []
        phrases += pairs or [part]
    return phrases
