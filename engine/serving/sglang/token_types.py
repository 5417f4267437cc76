"""Token types of a prompt that arrives as ids: from the marks that the model's chat template writes before each role's text.

A mark counts only where it begins with a special token, which text of users cannot contain. Knows nothing of SGLang.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import TokenType
from engine.prefix.roles import KINDS

_ROLES = ("system", "user", "assistant", "tool")
_FILL = "<<<text>>>"


class RoleMark(NamedTuple):
    """Token ids that open a message, and the type of what follows them."""

    ids: tuple[int, ...]
    kind: TokenType


class PromptTypes:
    """Types prompts of one model; without a usable chat template everything is the user's.

    Args:
        tokenizer: of transformers, or None.
    """

    def __init__(self, tokenizer: Any | None) -> None:
        self.marks = () if tokenizer is None or not getattr(tokenizer, "chat_template", None) else _role_marks(tokenizer)
        self._firsts = {mark.ids[0] for mark in self.marks}

    def kinds(self, ids: Sequence[int]) -> np.ndarray:
        """Returns uint8 [n], a TokenType for every token id."""
        kinds = np.full(len(ids), TokenType.USER, np.uint8)
        if not self.marks:
            return kinds
        array = np.asarray(ids, np.int64)
        for at in np.flatnonzero(np.isin(array, list(self._firsts))).tolist():
            found = [mark for mark in self.marks if tuple(array[at : at + len(mark.ids)].tolist()) == mark.ids]
            if found:
                kinds[at:] = max(found, key=lambda mark: len(mark.ids)).kind
        return kinds


def stated_kinds(runs: Sequence[tuple[str, int]], num_tokens: int) -> np.ndarray:
    """Returns uint8 [n] of runs of (type name, tokens). Raises BadRequest where they are not as long as the prompt."""
    total = sum(count for _, count in runs)
    if total != num_tokens or any(count < 0 for _, count in runs):
        raise BadRequest(f"The token types cover {total} tokens and the prompt has {num_tokens}; give runs that add up to it.")
    values = np.array([TokenType[name.upper()] for name, _ in runs], np.uint8)
    return np.repeat(values, [count for _, count in runs])


def _role_marks(tokenizer: Any) -> tuple[RoleMark, ...]:
    """Returns the marks of the roles that the template knows."""
    heads = {role: head for role in _ROLES if (head := _head(tokenizer, role)) is not None}
    marks = {role: _from_last_special(tokenizer, ids) for role, ids in heads.items()}
    known = {role: ids for role, ids in marks.items() if ids}
    # A mark that two roles share tells nothing; the ordinary speaker's keeps it.
    taken: dict[tuple[int, ...], str] = {}
    for role in ("user", "assistant", "system", "tool"):
        if role in known:
            taken.setdefault(known[role], role)
    return tuple(RoleMark(ids, KINDS[role]) for ids, role in taken.items())


def _head(tokenizer: Any, role: str) -> list[int] | None:
    """Returns the ids before a role's text behind an exchange, None where the template has no such role."""
    import jinja2

    exchange = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    before = {"system": [], "user": exchange}.get(role, exchange[:1])
    messages = [*before, {"role": role, "content": _FILL}]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    except (jinja2.TemplateError, ValueError):
        return None
    if _FILL not in text:
        return None
    return list(tokenizer.encode(text.split(_FILL)[0], add_special_tokens=False))


def _from_last_special(tokenizer: Any, ids: list[int]) -> tuple[int, ...]:
    """Returns the ids from the last opening special token on; () where there is none.

    Of special tokens with only spaces between them and the text, as ends of a header, the one before that counts.
    """
    special = set(tokenizer.all_special_ids) | set(getattr(tokenizer, "added_tokens_decoder", {}))
    places = [i for i, token_id in enumerate(ids) if token_id in special]
    for place in reversed(places):
        between = [token_id for token_id in ids[place + 1 :] if token_id not in special]
        if tokenizer.decode(between).strip():
            return tuple(ids[place:])
    return ()
