"""Counts tokens beside running requests, with a copy of the model's tokenizer: theirs is not made for two threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.runtime import Runtime


class TokenCounter:
    """Number of tokens of a text by the model in use; what looks like a special token counts as ordinary text. Thread-safe.

    Args:
        ready: returns the runtime, loading it where it is not there.
    """

    def __init__(self, ready: Callable[[], Runtime]) -> None:
        self._ready = ready
        self._lock = threading.Lock()
        self._of: Runtime | None = None
        self._copy: Any = None

    def __call__(self, text: str) -> int:
        """Returns the number of tokens of a text as it stands in a prompt."""
        runtime = self._ready()
        with self._lock:
            if self._of is not runtime:
                self._copy, self._of = _copy_of(runtime.model.tokenizer), runtime
            return len(self._copy.encode(text, add_special_tokens=False).ids)


def _copy_of(tokenizer: Any) -> Any:
    from tokenizers import Tokenizer

    copy = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    # Kept in the tokenizer itself, which is why a request's and this one must not be the same object.
    copy.encode_special_tokens = True
    return copy
