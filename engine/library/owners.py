"""When owners were last seen, so that the documents of those who left are deleted."""

import threading
import time

from engine.library.catalog import note_owner, owners_unseen_since
from engine.library.database import Database

NOTE_EVERY_S = 300.0


class Owners:
    """Notes in the file, every few minutes, that an owner is there; those of this process are also known by its own clock,
    so that a jump of the system's time deletes nothing of theirs.

    Args:
        max_absence_hours: after which an owner counts as gone.
    """

    def __init__(self, database: Database, max_absence_hours: float) -> None:
        self._database, self._max_absence_s = database, max_absence_hours * 3600
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def saw(self, owner: str) -> None:
        """Notes that an owner who has something in the library is there."""
        now = time.monotonic()
        with self._lock:
            if not owner or now - self._seen.get(owner, -NOTE_EVERY_S) < NOTE_EVERY_S:
                return
            self._seen[owner] = now
        with self._database.writing() as db:
            if db.execute("SELECT 1 FROM libraries WHERE owner = ?", (owner,)).fetchone():
                note_owner(db, owner, time.time())

    def forget(self, owner: str) -> None:
        """Drops what is known of an owner; their row is the caller's to delete."""
        with self._lock:
            self._seen.pop(owner, None)

    def gone(self) -> list[str]:
        """Returns the owners who were not seen for too long, neither by the file nor by this process."""
        now = time.monotonic()
        with self._lock:
            self._seen = {owner: seen for owner, seen in self._seen.items() if now - seen < self._max_absence_s}
            here = set(self._seen)
        with self._database.reading() as db:
            return [owner for owner in owners_unseen_since(db, time.time() - self._max_absence_s) if owner not in here]
