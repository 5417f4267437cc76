"""Tells which conversation a request goes on with where a log does not say: from prefixes seen so far, never from later ones."""

from collections.abc import Sequence

SHARED = -1
# A later turn repeats nearly all of the prompt before it; less in common is a template, or another's edit of it.
LEAST_SHARE = 0.5


class SessionGuess:
    """Follows which conversation every block belongs to.

    A request goes on with a conversation where the deepest block it has in common with earlier requests is that
    conversation's alone, behind the first block, and at least half of the conversation's latest prompt is repeated. What two
    conversations have touched is a template's and belongs to none.
    """

    def __init__(self) -> None:
        self._owner: dict[int, int] = {}
        self._length: dict[int, int] = {}

    def session(self, path: Sequence[int]) -> int:
        """Returns the number of a request's conversation, a new one where it goes on with none."""
        owner = self._owner
        known = 0
        while known < len(path) and path[known] in owner:
            known += 1
        found = owner[path[known - 1]] if known > 1 else SHARED
        if found == SHARED or known < LEAST_SHARE * self._length[found]:
            found = len(self._length)
        self._length[found] = len(path)
        for i, block in enumerate(path):
            if i >= known:
                owner[block] = found
            elif owner[block] != found:
                owner[block] = SHARED
        return found
