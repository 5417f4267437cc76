"""How the C library shares memory out among threads. Light: it is settled before the first thread of the engine begins."""

import ctypes
import platform

# The name of malloc.h.
_M_ARENA_MAX = -8


def share_one_arena() -> None:
    """Has all threads take memory from one place, where that is glibc's to decide; elsewhere does nothing.

    Every request runs in a thread of its own. By default the first sixteen or so get an arena each, and each arena then holds on to
    the most that any request ever took: the process grows for hundreds of requests without a leak.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
