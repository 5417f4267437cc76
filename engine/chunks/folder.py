"""The folder of chunk files: atomic writing, listing, setting aside, removing. Knows nothing of tensors.

Names: <hash>.safetensors, <hash>.<random>.tmp while one is written, <hash>.safetensors.bad for one set aside.
Other files in the folder are left alone.
"""

import errno
import os
import re
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from engine.chunks.verify import Signature

MAX_TEMPORARY_AGE_S = 3600.0
MAX_SET_ASIDE = 3
_NAME = re.compile(r"(?P<hash>[0-9a-f]{32})(?P<kind>\.safetensors|\.safetensors\.bad|\.[0-9a-f]+\.tmp)")


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A chunk file as it was listed. The last use is the later of access and modification time."""

    name: str
    hash: str
    is_set_aside: bool
    size_bytes: int
    last_use_ns: int


class ChunkFolder:
    """Chunk files in one folder that other processes may share; safe without locks, as every step is one rename or unlink."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, chunk_hash: str) -> Path:
        """Returns where a chunk's file is or would be."""
        return self.root / f"{chunk_hash}.safetensors"

    def prepare(self) -> None:
        """Makes the folder. Raises OSError where it cannot be made or written to."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "it is a file, not a folder") from None
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "it is read-only")

    def write(self, chunk_hash: str, payload: bytes) -> Signature:
        """Puts a whole chunk file in place or leaves nothing behind; returns its signature. Raises OSError."""
        self.prepare()
        temporary = self.root / f"{chunk_hash}.{secrets.token_hex(8)}.tmp"
        try:
            signature = _write_synced(temporary, payload)
            os.replace(temporary, self.path(chunk_hash))
        except OSError:
            _unlink(temporary)
            raise
        _sync_folder(self.root)
        return signature

    def entries(self) -> list[FolderEntry]:
        """Returns the chunk files, set-aside ones included, and removes temporary files that a crash left behind."""
        entries = []
        for name, match, status in self._scan():
            if match["kind"].endswith(".tmp"):
                if time.time() - status.st_mtime > MAX_TEMPORARY_AGE_S:
                    _unlink(self.root / name)
                continue
            entries.append(FolderEntry(name, match["hash"], name.endswith(".bad"), status.st_size, _last_use_ns(status)))
        return entries

    def set_aside(self, chunk_hash: str) -> None:
        """Renames a damaged file out of the way and drops the oldest such ones beyond MAX_SET_ASIDE. Raises OSError."""
        path = self.path(chunk_hash)
        os.replace(path, path.with_name(f"{path.name}.bad"))
        set_aside = sorted((entry for entry in self.entries() if entry.is_set_aside), key=lambda entry: entry.last_use_ns)
        for entry in set_aside[:-MAX_SET_ASIDE]:
            self.remove(entry)

    def is_unchanged(self, entry: FolderEntry) -> bool:
        """Returns whether nobody has used or replaced the file since it was listed; a vanished one counts as unchanged."""
        try:
            status = os.stat(self.root / entry.name)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return _last_use_ns(status) == entry.last_use_ns

    def remove(self, entry: FolderEntry) -> bool:
        """Removes a file and returns whether it is gone."""
        return _unlink(self.root / entry.name)

    def _scan(self) -> list[tuple[str, re.Match[str], os.stat_result]]:
        found = []
        try:
            names = os.listdir(self.root)
        except OSError:
            # No folder, no files; writing to it says why.
            return []
        for name in names:
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            try:
                status = os.lstat(self.root / name)
            except OSError:
                # Another process has just removed it.
                continue
            if stat.S_ISREG(status.st_mode):
                found.append((name, match, status))
        return found


def _write_synced(path: Path, payload: bytes) -> Signature:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        rest = memoryview(payload)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return Signature(status.st_ino, status.st_size, status.st_mtime_ns)


def _sync_folder(root: Path) -> None:
    """Makes a rename last through a power cut; where a file system cannot, the checksum still tells good from bad."""
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError:
        return
    finally:
        os.close(fd)


def _unlink(path: Path) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _last_use_ns(status: os.stat_result) -> int:
    return max(status.st_atime_ns, status.st_mtime_ns)
