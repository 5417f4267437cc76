"""One SQLite file that threads and processes share: opening, transactions, and what can go wrong. Knows no tables."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.errors import LibraryUnavailable

BUSY_S = 10.0
Migration = Callable[[sqlite3.Connection], None]


class Database:
    """A SQLite file in WAL mode. Every transaction is whole or not at all, whenever the process ends.

    Args:
        path: the file, made with its folder when missing.
        migrations: the i-th brings a file of version i to version i + 1; the version is SQLite's `user_version`.
    Raises LibraryUnavailable, also where the file is of a later version.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], busy_s: float = BUSY_S) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._busy_s = busy_s
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # One connection for all threads, behind the lock: statements are short, and a transaction is one thread's.
            self._connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise LibraryUnavailable(f"The library in {path.parent} cannot be opened ({error}); check who may write there.") from None
        try:
            with self._told():
                self._prepare(migrations)
        except LibraryUnavailable:
            self._connection.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Holds the connection for statements that see one state of the file."""
        with self._lock, self._told():
            if self._connection.in_transaction:
                yield self._connection
                return
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Holds the connection for one transaction: kept when the body ends, undone when it raises."""
        with self._lock, self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite has ended the transaction itself where the disk is full.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Closes the file; what is not finished is undone."""
        with self._lock:
            self._connection.close()

    def _prepare(self, migrations: Sequence[Migration]) -> None:
        connection = self._connection
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        # What a visitor deletes is overwritten, not only unlinked.
        connection.execute("PRAGMA secure_delete = ON")
        self._enter_wal()
        connection.execute("PRAGMA synchronous = FULL")
        if self._version() == len(migrations):
            return
        with self.writing() as inside:
            # Another process may have migrated while this one waited.
            version = self._version()
            if version > len(migrations):
                raise LibraryUnavailable(
                    f"The library {self.path} is of version {version}, this program knows up to {len(migrations)}; use the newer program."
                )
            for migrate in migrations[version:]:
                migrate(inside)
            inside.execute(f"PRAGMA user_version = {len(migrations)}")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _enter_wal(self) -> None:
        """Switches to a write-ahead log; SQLite does not wait by itself where two processes do so at once."""
        deadline = time.monotonic() + self._busy_s
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if _primary(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LibraryUnavailable(_sentence(error, self.path)) from error


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _sentence(error: sqlite3.Error, path: Path) -> str:
    match _primary(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"The library in {path.parent} is in use by another process for too long; try again in a moment."
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return f"The library in {path.parent} could not be written ({error}); free some space on the disk and try again."
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"The library in {path.parent} cannot be written to ({error}); check who may write there."
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return f"The library file {path} is damaged ({error}); move it away and start again, scenarios are put back by themselves."
    return f"The library in {path.parent} could not be used ({error}); try again."
