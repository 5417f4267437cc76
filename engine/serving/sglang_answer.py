"""One answer of an SGLang server as it arrives, piece by piece, with the times at which its tokens came. Knows no connection."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from engine.errors import BackendUnavailable

NOTHING: Mapping[str, str] = {}


class Asked(NamedTuple):
    """A prompt to be answered.

    Args:
        custom: custom parameters for the plugin.
        salt: separates the request's prefix cache from others'.
    """

    ids: list[int]
    max_new_tokens: int = 1
    temperature: float = 0.0
    seed: int = 0
    custom: Mapping[str, str] = NOTHING
    salt: str | None = None

    def body(self) -> dict[str, Any]:
        """Returns it as the server's route takes it."""
        params: dict[str, Any] = {"temperature": self.temperature, "max_new_tokens": self.max_new_tokens, "sampling_seed": self.seed}
        params |= {"custom_params": dict(self.custom)} if self.custom else {}
        return {"input_ids": self.ids, "sampling_params": params, "stream": True} | ({"cache_salt": self.salt} if self.salt else {})


class Streamed(NamedTuple):
    """An answer as it arrived.

    Args:
        ttft_s: from sending the prompt to the first token.
        ids: int32 [n]; times_s: float32 [n], seconds after the first token.
        num_cached: prompt tokens that the server's prefix cache had.
        meta: the server's metadata of the answer.
    """

    text: str
    ids: np.ndarray
    ttft_s: float
    times_s: np.ndarray
    num_cached: int
    meta: Mapping[str, Any]


class Pieces:
    """Collects the lines of one answer; the clock starts with it."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._begun, self._on_text = time.perf_counter(), on_text
        self._times: list[float] = []
        self._last: dict[str, Any] = {}

    def add(self, line: str) -> None:
        """Takes one line of the stream. Raises BackendUnavailable where it says that the request was refused, ValueError, KeyError."""
        now = time.perf_counter()
        if not line.startswith("data:") or line.endswith("[DONE]"):
            return
        piece = json.loads(line.removeprefix("data:"))
        reason = (piece.get("error") or {}).get("message") or _abort_of(piece)
        if reason:
            raise BackendUnavailable(f"The SGLang server refused the request ({str(reason)[:300]}); shorten it or see the server's log.")
        self._last = piece
        self._times += [now] * (len(piece["output_ids"]) - len(self._times))
        self._on_text(str(piece["text"]))

    def whole(self) -> Streamed | None:
        """Returns the answer, None where it ended before its end. Raises KeyError, TypeError."""
        ended = self._last and self._last["meta_info"].get("finish_reason")
        if not ended or not self._times:
            return None
        meta, ids = self._last["meta_info"], np.asarray(self._last["output_ids"], np.int32)
        # The token that ended the answer is no part of it, as in the built-in engine.
        num = len(ids) - int(ended.get("type") == "stop" and ended.get("matched") == int(ids[-1]))
        after = (np.asarray(self._times[:num], np.float64) - self._times[0]).astype(np.float32)
        return Streamed(str(self._last["text"]), ids[:num], self._times[0] - self._begun, after, int(meta.get("cached_tokens", 0)), meta)


def _abort_of(piece: Mapping[str, Any]) -> str | None:
    """Returns why the server gave a request up, None where it did not."""
    ended = (piece.get("meta_info") or {}).get("finish_reason") or {}
    return str(ended.get("message") or "it was given up") if ended.get("type") == "abort" else None
