"""Parts a text into sentences, in any language that marks their ends. Knows nothing of tokens."""

import re

# Ends that a space follows, and those of scripts that write none.
_END = re.compile(r"[.!?…]+[\"'”’»›)\]]*(?=\s)|[。！？｡।॥؟۔]+[”’」』）\]]*")
# Short forms that end in a dot and rarely end a sentence; in English, German, Spanish and French.
_SHORT_FORMS = {
    *("mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "gen", "col", "sgt", "rev", "hon", "mt", "ft", "nos", "vol", "vols"),
    *("fig", "figs", "eq", "eqs", "sec", "pp", "ed", "eds", "vs", "etc", "cf", "approx", "dept", "inc", "ltd", "corp", "e.g"),
    *("i.e", "a.m", "p.m", "u.s", "u.k", "bzw", "z.b", "d.h", "u.a", "nr", "abb", "bd", "hrsg", "ggf", "vgl", "usw", "sra"),
    *("srta", "dra", "ud", "uds", "pág", "págs", "av", "mme", "mlle"),
}
# Words of their own, unless a number follows.
_BEFORE_NUMBERS = {"no", "ca", "ch", "art", "est"}


def split_sentences(text: str) -> list[str]:
    """Returns the sentences of a text, without the blanks between them; joined by blanks they are the text."""
    sentences, start = [], 0
    for end in _END.finditer(text):
        if _ends_sentence(text, start, end):
            sentences.append(text[start : end.end()])
            start = end.end()
    sentences.append(text[start:])
    return [" ".join(sentence.split()) for sentence in sentences if sentence.strip()]


def summary_of(text: str, num_chars: int = 160) -> str:
    """Returns the first sentence, or the first few that fit; cut at a word where the first alone is longer."""
    sentences = split_sentences(text)
    summary = sentences[0] if sentences else ""
    for sentence in sentences[1:]:
        if len(summary) + 1 + len(sentence) > num_chars:
            break
        summary = f"{summary} {sentence}"
    if len(summary) <= num_chars:
        return summary
    head = summary[:num_chars]
    blank = head.rfind(" ")
    return f"{head[:blank] if blank > num_chars // 2 else head}…"


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    """Returns whether a mark ends a sentence: not in a short form or initial, not before a small letter."""
    if end[0] != ".":
        return True
    # A word before the mark and a letter behind it are near; a long text is not copied for them.
    word = text[max(start, end.start() - 40) : end.start()].rsplit(maxsplit=1)[-1:] or [""]
    bare = word[0].lstrip("([\"'“‘«").lower()
    if bare in _SHORT_FORMS or (len(bare) == 1 and bare.isalpha()):
        return False
    following = text[end.end() : end.end() + 40].lstrip()[:1]
    return not (following.islower() or (bare in _BEFORE_NUMBERS and following.isdigit()))
