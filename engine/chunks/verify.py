"""Opens a chunk file and says whether it is what its name promises. Knows nothing of folders or bounds."""

import os
import stat
import time
import weakref
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from engine.chunks.key import ChunkKey
from engine.chunks.layout import CHECKSUM_BYTES, LENGTH_BYTES, MAX_HEADER_BYTES, DamagedFile, Layout, read_header

_BLOCK_BYTES = 4 * 2**20


class Signature(NamedTuple):
    """What tells whether a file is still the one that was verified. Marking a use leaves it alone."""

    inode: int
    size_bytes: int
    mtime_ns: int


class FileHandle:
    """An open file that closes when the last one who holds it lets go. Raises OSError where it cannot be opened."""

    __slots__ = ("__weakref__", "fd")

    def __init__(self, path: Path, flags: int = 0) -> None:
        # O_NONBLOCK: a named pipe under a chunk's name must not hang the caller.
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
        weakref.finalize(self, os.close, self.fd)

    @property
    def signature(self) -> Signature:
        """Returns the file's present signature."""
        status = os.fstat(self.fd)
        return Signature(status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def has_name(self) -> bool:
        """Returns whether the file can still be found in a folder, as far as the file system tells."""
        try:
            return os.fstat(self.fd).st_nlink > 0
        except OSError:
            return True

    def read_exactly(self, buffer: memoryview, offset: int) -> bool:
        """Fills `buffer` from `offset` and returns whether the file had that many bytes. Raises OSError."""
        done = 0
        while done < len(buffer):
            num_read = os.preadv(self.fd, [buffer[done:]], offset + done)
            if num_read == 0:
                return False
            done += num_read
        return True

    def drop_pages(self) -> None:
        """Asks the system to forget the file's pages, so that the next read comes from the disk; where it can do that."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def mark_used(self) -> None:
        """Sets the access time, which orders eviction, and keeps the modification time, which is in the signature."""
        try:
            os.utime(self.fd, ns=(time.time_ns(), os.fstat(self.fd).st_mtime_ns))
        except OSError:
            # A read-only folder or another user's file: the order of eviction there is not ours to keep.
            return


class Verified(NamedTuple):
    """Where a file's data area starts, and what computing its chunk took by its header, seconds."""

    data_start: int
    time_s: float


def verify_file(file: FileHandle, key: ChunkKey, trusted: Signature | None) -> Verified:
    """Returns where the data is, having checked type, length, header and checksum.

    Args:
        trusted: signature of the file as this process last verified it; its checksum is not computed again.
    Raises:
        DamagedFile: the file is not the key's chunk. OSError: it cannot be read.
    """
    if not stat.S_ISREG(os.fstat(file.fd).st_mode):
        raise DamagedFile("it is not a regular file")
    signature = file.signature
    header_len = int.from_bytes(_read(file, LENGTH_BYTES, 0), "little")
    data_start = LENGTH_BYTES + header_len
    if header_len > MAX_HEADER_BYTES or data_start + Layout.of(key).data_bytes != signature.size_bytes:
        raise DamagedFile("its length is not its chunk's")
    stated = read_header(_read(file, header_len, LENGTH_BYTES), key)
    if signature != trusted and _compute_checksum(file, data_start, signature.size_bytes) != stated.checksum:
        raise DamagedFile("its checksum does not match")
    return Verified(data_start, stated.time_s)


def _read(file: FileHandle, num_bytes: int, offset: int) -> bytes:
    buffer = bytearray(num_bytes)
    if not file.read_exactly(memoryview(buffer), offset):
        raise DamagedFile("it is too short")
    return bytes(buffer)


def _compute_checksum(file: FileHandle, start: int, stop: int) -> str:
    checksum = blake2b(digest_size=CHECKSUM_BYTES)
    block = memoryview(bytearray(min(_BLOCK_BYTES, stop - start)))
    for offset in range(start, stop, len(block)):
        part = block[: stop - offset]
        if not file.read_exactly(part, offset):
            raise DamagedFile("it is too short")
        checksum.update(part)
    return checksum.hexdigest()
