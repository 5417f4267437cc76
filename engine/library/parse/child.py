"""The process that parses one file: `python -m engine.library.parse.child KIND LIMITS`, file on stdin, answer on stdout.

It bounds its own memory and time first, so that a hostile file ends this process and nothing else.
"""

import importlib
import os
import sys
from types import ModuleType

import msgspec

from engine.errors import BadDocument
from engine.library.parse.base import ParsedText, ParseLimits

NO_MEMORY_EXIT, TOO_DEEP_EXIT = 3, 4
_MODULES = {"txt": "text", "md": "markdown", "pdf": "pdf", "csv": "table", "html": "page", "docx": "word"}


class Answer(msgspec.Struct):
    """What the process found: the text, or why there is none (a sentence without its subject)."""

    text: ParsedText | None = None
    refused: str = ""


def parse_here(kind: str, data: bytes, limits: ParseLimits) -> ParsedText:
    """Returns a file's text, parsed in this process. Raises BadDocument, and what a parser raises on a damaged file."""
    module: ModuleType = importlib.import_module(f"engine.library.parse.{_MODULES[kind]}")
    return module.parse(data, limits)


def main(kind: str, limits: ParseLimits) -> None:
    """Parses what stands on stdin and writes the answer."""
    _bound(limits)
    try:
        answer = Answer(text=parse_here(kind, sys.stdin.buffer.read(), limits))
    except BadDocument as error:
        answer = Answer(refused=str(error))
    except MemoryError:
        os._exit(NO_MEMORY_EXIT)
    except RecursionError:
        os._exit(TOO_DEEP_EXIT)
    sys.stdout.buffer.write(msgspec.json.encode(answer))


def _bound(limits: ParseLimits) -> None:
    """Sets the limits of this process; Linux keeps them all, other systems what they can."""
    if sys.platform == "win32":
        return
    import resource

    # Whoever measures a request at this moment comes first.
    os.nice(10)
    cpu_s = max(1, round(limits.time_s))
    bounds = {resource.RLIMIT_CPU: cpu_s, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}
    if sys.platform == "linux":
        bounds[resource.RLIMIT_AS] = limits.memory_bytes
    for name, value in bounds.items():
        resource.setrlimit(name, (value, value))


if __name__ == "__main__":
    main(sys.argv[1], msgspec.json.decode(sys.argv[2], type=ParseLimits))
