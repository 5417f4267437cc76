"""`python -m engine.check [FOLDER]`: looks for damage in the library and in the chunk store of a cache folder.

Prints what it found, and last a line of JSON; ends with 1 where something is damaged. Nothing is changed, and it may run while
the app does. A file that a crash left half-written under a temporary name is counted, not a damage: nobody reads it.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from engine.errors import BadRequest
from engine.library.audit import audit_library
from engine.library.library import FILE_NAME
from engine.settings import Settings

LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 2**20
_BLOCK_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Report:
    """What is in a cache folder, and what is wrong with it, one sentence each.

    Args:
        num_kv_files: whole files of stored KV. num_set_aside: files that the store has refused; they are not used.
        num_temporary: files that were being written when a process ended, or are being written now.
    """

    num_documents: int
    num_chunks: int
    num_kv_files: int
    num_set_aside: int
    num_temporary: int
    problems: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Returns whether nothing is wrong."""
        return not self.problems


def check(cache_dir: Path) -> Report:
    """Returns the state of a cache folder's library and chunk store."""
    library = audit_library(cache_dir / "library" / FILE_NAME)
    folder = cache_dir / "chunks"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    stored = [name for name in names if name.endswith(".safetensors")]
    problems = [f"{name}: {problem}" for name in stored if (problem := kv_file_problem(folder / name))]
    return Report(
        num_documents=library.num_documents,
        num_chunks=library.num_chunks,
        num_kv_files=len(stored),
        num_set_aside=sum(name.endswith(".bad") for name in names),
        num_temporary=sum(name.endswith(".tmp") for name in names),
        problems=(*library.problems, *problems),
    )


def kv_file_problem(path: Path) -> str | None:
    """Returns what is wrong with a file of stored KV, or None: its header, length, name and checksum are looked at.

    The header is safetensors' (https://github.com/huggingface/safetensors#format); the hash and checksum are in its metadata.
    """
    try:
        with path.open("rb") as file:
            header_len = int.from_bytes(file.read(LENGTH_BYTES), "little")
            fields = json.loads(file.read(header_len)) if header_len <= _MAX_HEADER_BYTES else None
            if not isinstance(fields, dict) or not isinstance(told := fields.pop("__metadata__", None), dict):
                return "its header is not a chunk's"
            data_bytes = max((entry["data_offsets"][1] for entry in fields.values()), default=0)
            if path.stat().st_size != LENGTH_BYTES + header_len + data_bytes:
                return "its length is not what its header says"
            stated = str(told.get("checksum"))
            checksum = blake2b(digest_size=max(1, min(64, len(stated) // 2)))
            while block := file.read(_BLOCK_BYTES):
                checksum.update(block)
    except FileNotFoundError:
        # Evicted or deleted since it was listed.
        return None
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return "its header cannot be read"
    if told.get("hash") != path.stem:
        return "it holds another chunk than its name says"
    return None if checksum.hexdigest() == stated else "its checksum does not match"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report of a folder and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.check", description="Looks for damage in the library and the chunk store.")
    parser.add_argument("folder", nargs="?", type=Path, help="cache folder; FUSESCOPE_CACHE or its default where none is named")
    given = parser.parse_args(arguments).folder
    try:
        folder = given or Settings.from_env().cache_dir.expanduser()
    except BadRequest as error:
        parser.error(str(error))
    report = check(folder)
    print(f"{folder}: {report.num_documents} documents, {report.num_chunks} chunks, {report.num_kv_files} KV files")
    for problem in report.problems:
        print(f"  {problem}")
    print(json.dumps({"clean": report.is_clean, **asdict(report)}))
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
