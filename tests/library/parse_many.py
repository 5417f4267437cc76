"""Parses every file of a folder as the parsing process would, each in a fork of this one, so that the parsers are imported once.

Prints one line of JSON for each: its name, exit status and output.
"""

import json
import multiprocessing
import os
import sys
from pathlib import Path

import docx  # noqa: F401
import lxml.etree  # noqa: F401
import markdown_it  # noqa: F401
import msgspec
import pypdf  # noqa: F401

from engine.library.parse.base import ParseLimits
from engine.library.parse.child import main


def run(path: Path, limits: ParseLimits, out: int) -> None:
    """Does what `python -m engine.library.parse.child` does."""
    os.dup2(out, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stdin, sys.stdout = path.open(), os.fdopen(1, "w")
    main(path.suffix[1:], limits)
    sys.stdout.flush()


def parse_all(folder: Path, limits: ParseLimits) -> None:
    """Parses the files in order of name."""
    fork = multiprocessing.get_context("fork")
    for path in sorted(folder.iterdir()):
        source, target = os.pipe()
        process = fork.Process(target=run, args=(path, limits, target))
        process.start()
        os.close(target)
        with os.fdopen(source, "rb") as pipe:
            out = pipe.read()
        process.join()
        print(json.dumps({"name": path.name, "returncode": process.exitcode, "out": out.decode()}))


if __name__ == "__main__":
    parse_all(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=ParseLimits))
