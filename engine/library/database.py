"""One SQLite file that threads and processes share: opening, transactions, and what can go wrong. Knows no tables."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.errors import BadRequest, LibraryUnavailable

logger = logging.getLogger(__name__)
BUSY_S = 10.0
Migration = Callable[[sqlite3.Connection], None]


class Database:
    """A SQLite file in WAL mode. Every transaction is whole or not at all, whenever the process ends.

    Args:
        path: the file, made with its folder when missing.
        migrations: the i-th brings a file of version i to version i + 1; the version is SQLite's `user_version`.
        fill: run in one transaction whenever the file was opened.
    Raises LibraryUnavailable, also where the file is of a later version.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], busy_s: float = BUSY_S, fill: Migration | None = None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._busy_s = busy_s
        self._migrations, self._fill = migrations, fill
        self._file: tuple[int, int] | None = None
        self._is_closed = False
        self._open()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Holds the connection for statements that see one state of the file."""
        with self._lock, self._told():
            self._follow_path()
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
            self._follow_path()
            with self._transaction() as connection:
                yield connection

    def empty_log(self) -> None:
        """Writes the log into the file and empties it: what was overwritten in the file stands there in full until then."""
        with self._lock, self._told():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Closes the file; what is not finished is undone."""
        with self._lock:
            self._is_closed = True
            self._connection.close()

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # One connection for all threads, behind the lock: statements are short, and a transaction is one thread's.
            self._connection = sqlite3.connect(self.path, timeout=self._busy_s, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise LibraryUnavailable(f"The library in {self.path.parent} cannot be opened ({error}); check who may write there.") from None
        try:
            with self._told():
                self._prepare()
            self._file = self._file_there()
            if self._fill is not None:
                with self.writing() as inside:
                    self._fill(inside)
        except LibraryUnavailable:
            self._file = None
            self._connection.close()
            raise

    def _follow_path(self) -> None:
        """Opens the file that the path leads to where the one that is open was removed or replaced.

        SQLite does not notice: it goes on in a file without a name, which is lost when the process ends.
        """
        if self._is_closed:
            return
        # None where opening it failed: it is tried again each time.
        if self._file is not None:
            if self._connection.in_transaction or self._file == self._file_there():
                return
            logger.warning("the library %s was removed or replaced while it was open; it is opened anew", self.path)
            self._file = None
            self._connection.close()
        self._open()

    def _file_there(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _prepare(self) -> None:
        connection, migrations = self._connection, self._migrations
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        # What a visitor deletes is overwritten, not only unlinked.
        connection.execute("PRAGMA secure_delete = ON")
        self._enter_wal()
        connection.execute("PRAGMA synchronous = FULL")
        if self._version() == len(migrations):
            return
        with self._transaction() as inside:
            # Another process may have migrated while this one waited.
            version = self._version()
            if version > len(migrations):
                raise LibraryUnavailable(
                    f"The library {self.path} is of version {version}, this program knows up to {len(migrations)}; use the newer program."
                )
            for migrate in migrations[version:]:
                migrate(inside)
            inside.execute(f"PRAGMA user_version = {len(migrations)}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has ended the transaction itself where the disk is full.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

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
        except UnicodeEncodeError as error:
            # Half a character, as JSON's escapes can write one: no name and no id of the library holds it.
            raise BadRequest(f"The name or id {error.object[:80]!r} holds half a character; send it whole or leave it out.") from None


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
    if "no such module: fts5" in str(error):
        return "Python's SQLite was built without full-text search (FTS5); use a Python that has it, as those of python.org and uv do."
    return f"The library in {path.parent} could not be used ({error}); try again."
