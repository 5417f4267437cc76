"""Who may change what, and how much of it. Functions take a connection inside a transaction."""

import sqlite3
import time

from engine.errors import BadRequest
from engine.library.catalog import find_library, insert_library, note_owner, owner_totals
from engine.library.limits import MIB, LibraryLimits
from engine.library.parse.base import clean
from engine.library.types import SHARED

MAX_NAME_CHARS = 60


def own_library(db: sqlite3.Connection, owner: str, name: str) -> int:
    """Returns the number of one of the owner's libraries. Raises UnknownName, BadRequest on a shared one."""
    row = find_library(db, owner, name)
    if row["owner"] == SHARED:
        raise BadRequest(f"The library {name!r} belongs to everybody and cannot be changed; make one of your own.")
    return int(row["id"])


def make_library(db: sqlite3.Connection, owner: str, name: str, limits: LibraryLimits) -> int:
    """Makes an empty library and returns its number. Raises BadRequest."""
    check_name(db, owner, name)
    if owner_totals(db, owner).num_libraries >= limits.owner_libraries:
        raise BadRequest(f"You have {limits.owner_libraries} libraries, which is all one visitor may have; delete one first.")
    note_owner(db, owner, time.time())
    return insert_library(db, owner, name, name, time.time())


def own_or_new_library(db: sqlite3.Connection, owner: str, name: str, limits: LibraryLimits) -> int:
    """Returns the number of the owner's library, made when missing. Raises BadRequest."""
    known = db.execute("SELECT 1 FROM libraries WHERE name = ? AND owner IN (?, ?)", (name, owner, SHARED)).fetchone()
    return own_library(db, owner, name) if known else make_library(db, owner, name, limits)


def check_name(db: sqlite3.Connection, owner: str, name: str) -> None:
    """Raises BadRequest where a new library of the owner may not have this name."""
    if owner == SHARED:
        raise BadRequest("Only scenarios are shared libraries; name an owner.")
    if not name.strip() or name != " ".join(clean(name).split()):
        raise BadRequest(f"The library name {name[:80]!r} is empty or has odd spaces or signs; write it in plain words.")
    if len(name) > MAX_NAME_CHARS:
        raise BadRequest(f"The library name has {len(name)} characters; at most {MAX_NAME_CHARS} are allowed, so shorten it.")
    if db.execute("SELECT 1 FROM libraries WHERE name = ? AND owner IN (?, ?)", (name, owner, SHARED)).fetchone():
        raise BadRequest(f"There is a library {name!r} already; choose another name.")


def check_room(db: sqlite3.Connection, owner: str, num_bytes: int, limits: LibraryLimits) -> None:
    """Raises BadRequest where an owner may not have one more document of so many bytes."""
    if owner == SHARED:
        raise BadRequest("The shared libraries are read-only; name an owner to add documents.")
    totals = owner_totals(db, owner)
    if totals.num_documents >= limits.owner_documents:
        raise BadRequest(f"You have {totals.num_documents} documents, which is all one visitor may have; delete one first.")
    if totals.size_bytes + num_bytes > limits.owner_bytes:
        sizes = f"{totals.size_bytes / MIB:.1f} MiB of documents and this one has {num_bytes / MIB:.1f} MiB"
        raise BadRequest(f"You have {sizes}; {limits.owner_bytes / MIB:g} MiB is all one visitor may have, so delete some first.")
