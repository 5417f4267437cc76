"""The chat template of a tokenizer: rendered around marks, never around a visitor's words. Knows no prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

# Templates that write the day's date get the same one for ever, the one that Llama 3's falls back to: a system part that changes
# at midnight would take every KV cache with it that was computed behind it.
_DAY = datetime(2024, 7, 26)
_CODES = ("%d", "%b", "%B", "%m", "%Y", "%y", "%a", "%A", "%H", "%I", "%M", "%S")
_CLOCK = "strftime_now"
_QUESTION, _ANSWER = "<<<a question>>>", "<<<an answer>>>"


def rendered(tokenizer: Any, messages: Sequence[Mapping[str, str]], **options: Any) -> str | None:
    """Returns the text of messages by the tokenizer's template, None where the template cannot hold them.

    Args:
        options: variables of the template, and those of `apply_chat_template`.
    """
    try:
        template = _on_a_fixed_day(tokenizer.get_chat_template())
        return str(tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, **options))
    except _template_errors():
        return None


def opening(tokenizer: Any) -> str:
    """Returns the token that this tokenizer puts before every text, "" for none.

    Templates write it themselves; a prompt that is made without one has to begin with it.
    """
    first = tokenizer("a")["input_ids"][:1]
    return str(tokenizer.bos_token) if tokenizer.bos_token and first == [tokenizer.bos_token_id] else ""


def turn_ends(tokenizer: Any) -> tuple[int, ...]:
    """Returns the special token that the template writes behind an answer: whoever writes it has ended the turn.

    Checkpoints name it as an end token in one of their files as a rule, but not all of them.
    """
    if not getattr(tokenizer, "chat_template", None):
        return ()
    messages = [{"role": "user", "content": _QUESTION}, {"role": "assistant", "content": _ANSWER}]
    behind = (rendered(tokenizer, messages) or "").partition(_ANSWER)[2].lstrip()
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"][:1] if behind else []
    known = tokenizer.added_tokens_decoder
    return tuple(token_id for token_id in ids if token_id in known and known[token_id].special)


def _on_a_fixed_day(template: str) -> str:
    """Returns a template whose clock stands still. It is shadowed by a macro, as transformers takes no functions as variables."""
    if _CLOCK not in template:
        return template
    written = "".join(f" | replace('{code}', '{_DAY.strftime(code)}')" for code in _CODES)
    return f"{{%- macro {_CLOCK}(format) -%}}{{{{ format{written} }}}}{{%- endmacro -%}}{template}"


def _template_errors() -> tuple[type[Exception], ...]:
    """Returns what rendering raises: templates refuse by raising, and those that were not meant for such messages fail as code does."""
    import jinja2

    return (jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
