"""Has a file parsed by a process of its own, which is ended when it takes too long, too much or is no longer wanted."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from engine.errors import BadDocument, Cancelled
from engine.library.limits import MIB, LibraryLimits
from engine.library.parse.base import ParsedText, ParseLimits
from engine.library.parse.child import NO_MEMORY_EXIT, TOO_DEEP_EXIT, Answer

ROOT = Path(__file__).resolve().parents[3]
_POLL_S = 0.1
# What an interpreter needs to start; the parser has no use for the rest, keys and passwords among it.
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "SYSTEMROOT")


def parse_apart(kind: str, data: bytes, limits: LibraryLimits, cancelled: Callable[[], bool] = lambda: False) -> ParsedText:
    """Returns a file's text. Raises BadDocument (without the subject) and Cancelled; the process is gone on return.

    Args:
        kind: see `kind_of`.
    """
    within = ParseLimits(
        num_pages=limits.num_pages,
        num_rows=limits.num_rows,
        num_chars=limits.num_chars,
        unpacked_bytes=limits.unpacked_bytes,
        time_s=limits.parse_time_s,
        memory_bytes=limits.parse_memory_bytes,
    )
    command = [sys.executable, "-m", "engine.library.parse.child", kind, msgspec.json.encode(within).decode()]
    env = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, env=env, **pipes) as process:
        # The waiting below looks for a stop every moment, so that giving the file is another thread's.
        feeder = threading.Thread(target=_feed, args=(process.stdin, data), daemon=True)
        process.stdin = None
        feeder.start()
        try:
            out = _wait(process, limits.parse_time_s, cancelled)
        finally:
            process.kill()
            feeder.join()
    return _read_answer(kind, process.returncode, out, limits)


def _feed(pipe: IO[bytes], data: bytes) -> None:
    try:
        with pipe:
            pipe.write(data)
    except BrokenPipeError:
        # The process ended before it had read everything; its exit status says why.
        return


def _wait(process: "subprocess.Popen[bytes]", time_s: float, cancelled: Callable[[], bool]) -> bytes:
    """Returns what the process wrote. Raises BadDocument when the time is up, Cancelled."""
    deadline = time.monotonic() + time_s
    while True:
        if cancelled():
            raise Cancelled("Stopped while the file was read; nothing of it is kept.")
        if time.monotonic() > deadline:
            raise BadDocument(_too_slow(time_s))
        try:
            return process.communicate(timeout=_POLL_S)[0]
        except subprocess.TimeoutExpired:
            continue


def _read_answer(kind: str, returncode: int, out: bytes, limits: LibraryLimits) -> ParsedText:
    if returncode == NO_MEMORY_EXIT:
        raise BadDocument(f"needs more than {limits.parse_memory_bytes // MIB} MiB of memory to be read; split it into smaller files.")
    if returncode == TOO_DEEP_EXIT:
        raise BadDocument("is nested too deeply to be read; save it in a plainer form.")
    if returncode == -24:
        raise BadDocument(_too_slow(limits.parse_time_s))
    if returncode != 0:
        # A parser that stumbles over a damaged file ends its process, whatever the error was.
        raise BadDocument(f"is damaged and could not be read as .{kind}; open it in its program and save it anew.")
    answer = msgspec.json.decode(out, type=Answer)
    if answer.text is None:
        raise BadDocument(answer.refused)
    return answer.text


def _too_slow(time_s: float) -> str:
    return f"took more than {time_s:g} s to read; split it into smaller files or save it in a plainer form."
