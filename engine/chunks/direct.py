"""Reading chunk files past the system's page cache (O_DIRECT), and whether a folder's file system lets one."""

import mmap
import os
import tempfile
from pathlib import Path

from engine.chunks.verify import FileHandle

# Offsets, lengths and memory of a direct read are multiples of the device's block, which is 512 or 4,096 bytes.
ALIGN = 4096
_BLOCK_BYTES = 2**20


class DirectFile(FileHandle):
    """An open file whose every read comes from the device, whatever its offset and length. Raises OSError where that cannot be had."""

    __slots__ = ()

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_DIRECT)

    def read_exactly(self, buffer: memoryview, offset: int) -> bool:
        """Fills `buffer` from `offset` through an aligned block and returns whether the file had that many bytes. Raises OSError."""
        if not len(buffer):
            return True
        done, stop = 0, _rounded_up(offset + len(buffer))
        # Anonymous memory of mmap begins at a page; a block of each read's own lets threads read at once.
        with mmap.mmap(-1, min(_BLOCK_BYTES, stop - _rounded_down(offset))) as block, memoryview(block) as view:
            while done < len(buffer):
                start = _rounded_down(offset + done)
                skipped = offset + done - start
                num_read = os.preadv(self.fd, [view[: stop - start]], start)
                num_wanted = min(num_read - skipped, len(buffer) - done)
                if num_wanted <= 0:
                    return False
                buffer[done : done + num_wanted] = view[skipped : skipped + num_wanted]
                done += num_wanted
        return True


def direct_hindrance(folder: Path) -> str | None:
    """Returns why files of a folder cannot be read past the page cache, None where they can: found out by reading one."""
    if not hasattr(os, "O_DIRECT"):
        return "this system has no O_DIRECT"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="direct-") as file:
            file.write(bytes(ALIGN + 1))
            file.flush()
            os.fsync(file.fileno())
            found = bytearray(ALIGN + 1)
            if not DirectFile(Path(file.name)).read_exactly(memoryview(found), 0):
                return "a direct read ended early"
    except OSError as error:
        return f"a direct read failed there ({error.strerror})"
    return None


def _rounded_down(offset: int) -> int:
    return offset // ALIGN * ALIGN


def _rounded_up(offset: int) -> int:
    return -(-offset // ALIGN) * ALIGN
