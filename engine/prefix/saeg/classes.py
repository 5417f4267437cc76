"""Classes of blocks: what is known of a session's next request when it ends, and how often a shared block comes back.

A block that one session touched is classed by that session's last request (agent, waits for a tool, first turn or later,
predicted to go on, behind a known template, token type, the session's pace, prompt length); one that several sessions touched
by the mean gap between touches and whether it is system text. Features can be left out by name.
"""

import math

import numpy as np

from engine.errors import BadRequest
from engine.prefix.blocks import TokenType
from engine.prefix.request import CacheRequest

FEATURES = ("agent", "wait", "turn", "prediction", "template", "type", "pace", "length", "shared")
# The axes of a session class, in order; a class number counts through them, the last one fastest.
SHAPE = (2, 2, 4, 2, 2, 5, 4, 4)
NUM_SESSION, NUM_GAPS = math.prod(SHAPE), 16
NUM_CLASSES = NUM_SESSION + 2 * NUM_GAPS
UNKNOWN_GAP_S, GAP_RATE, PACE_RATE = 60.0, 0.3, 0.5
_TYPE_STEP = SHAPE[6] * SHAPE[7]
_LENGTHS, _PACES_S = (1_000, 4_000, 16_000), (8.0, 60.0)
_FORGET_S = 9_470.0


class Classifier:
    """Numbers the classes of a request's blocks; follows the pace of sessions.

    Args:
        without: features left out, comma-separated names of FEATURES.
        turn_buckets: 2 for first and later turns, 4 for 0, 1, 2 to 4 and later.
    """

    def __init__(self, without: str = "", turn_buckets: int = 2) -> None:
        dropped = [name for name in without.split(",") if name]
        for name in dropped:
            if name not in FEATURES:
                raise BadRequest(f"Unknown feature {name!r} to leave out; known ones are: {', '.join(FEATURES)}.")
        if turn_buckets not in (2, 4):
            raise BadRequest(f"The number of turn buckets is {turn_buckets}; it must be 2 or 4.")
        self._uses = {name: name not in dropped for name in FEATURES}
        self._turn_buckets = turn_buckets
        self._paces: dict[int, tuple[float, float | None]] = {}

    def see(self, request: CacheRequest) -> None:
        """Learns the gap before a request of a session."""
        before = self._paces.get(request.session)
        pace = None
        if before is not None:
            last_s, pace = before
            log_gap = math.log(max(request.time_s - last_s, 1e-3))
            pace = log_gap if pace is None else pace + PACE_RATE * (log_gap - pace)
        self._paces[request.session] = (request.time_s, pace)

    def forget(self, now_s: float) -> None:
        """Drops sessions that have been silent for longer than the curves reach."""
        self._paces = {session: pace for session, pace in self._paces.items() if now_s - pace[0] <= _FORGET_S}

    def numbers(self, request: CacheRequest, is_templated: bool, kinds: np.ndarray, is_shared: np.ndarray, gap_s: np.ndarray) -> np.ndarray:
        """Returns class numbers int64 [n] of a request's blocks.

        Args:
            kinds: uint8 [n] token types; is_shared: bool [n], touched by several sessions; gap_s: float64 [n], mean gap, NaN unknown.
        """
        uses = self._uses
        own = self._session_number(request, is_templated)
        found = own + kinds.astype(np.int64) * _TYPE_STEP if uses["type"] else np.full(len(kinds), own)
        if uses["shared"] and is_shared.any():
            gaps = np.where(np.isnan(gap_s[is_shared]), UNKNOWN_GAP_S, gap_s[is_shared])
            step = np.clip(np.floor(np.log2(np.maximum(gaps, 1e-6))).astype(np.int64) + 4, 0, NUM_GAPS - 1)
            is_system = (kinds[is_shared] == TokenType.SYSTEM) if uses["type"] else 0
            found[is_shared] = NUM_SESSION + 2 * step + is_system
        return found

    def _session_number(self, request: CacheRequest, is_templated: bool) -> int:
        uses = self._uses
        values = (
            request.is_agent and uses["agent"],
            request.is_agent and request.waits_for_tool and uses["wait"],
            self._turn(request.turn) if uses["turn"] else 0,
            request.follow_up >= 0.5 and uses["prediction"],
            request.turn == 0 and is_templated and uses["template"],
            0,
            self._pace(request.session) if uses["pace"] else 0,
            sum(request.num_tokens >= least for least in _LENGTHS) if uses["length"] else 0,
        )
        number = 0
        for value, size in zip(values, SHAPE, strict=True):
            number = number * size + int(value)
        return number

    def _turn(self, turn: int) -> int:
        if self._turn_buckets == 2:
            return min(turn, 1)
        return turn if turn < 2 else (2 if turn < 5 else 3)

    def _pace(self, session: int) -> int:
        _, pace = self._paces.get(session, (0.0, None))
        return 0 if pace is None else 1 + sum(math.exp(pace) >= least for least in _PACES_S)


def in_words(number: int) -> str:
    """Returns a class in words, as "chat, later turn, expected to go on, response, seconds apart, under 4k tokens"."""
    if number >= NUM_SESSION:
        step, is_system = divmod(number - NUM_SESSION, 2)
        return f"shared{' system text' if is_system else ''}, touched about every {2.0 ** (step - 4):g} s"
    agent, wait, turn, goes_on, templated, kind, pace, length = np.unravel_index(number, SHAPE)
    words = [
        "agent" if agent else "chat",
        "waiting for a tool" if wait else "",
        ("first turn", "later turn", "turn 2 to 4", "turn 5 and later")[turn],
        "expected to go on" if goes_on else "not expected to go on",
        "known template" if templated else "",
        TokenType(int(kind)).name.lower().replace("_", " "),
        ("", "turns seconds apart", "turns under a minute apart", "turns minutes apart")[pace],
        ("under 1k tokens", "under 4k tokens", "under 16k tokens", "16k tokens and more")[length],
    ]
    return ", ".join(word for word in words if word)
