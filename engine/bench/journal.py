"""The file a benchmark leaves finished samples in, so that one that was stopped goes on where it was."""

import hashlib
import os
from pathlib import Path

import msgspec

from engine.bench.records import SampleRecord
from engine.errors import BadRequest

FORMAT = "fusescope-bench/1"


class Journal:
    """Finished samples by index, one JSON line each, on disk before the next sample is begun."""

    def __init__(self, path: Path, fresh: bool = False) -> None:
        """Reads what is there; a last line cut short is dropped, and all of it where `fresh`. Raises BadRequest."""
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if fresh:
                path.unlink(missing_ok=True)
            self.records = self._read()
        except OSError as error:
            raise BadRequest(_unwritable(path, error)) from None

    def append(self, record: SampleRecord) -> None:
        """Files a finished sample. Raises BadRequest where the disk does not take it."""
        try:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(record) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadRequest(_unwritable(self._path, error)) from None
        self.records[record.index] = record

    def remove(self) -> None:
        """Deletes the file: its benchmark has finished."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> dict[int, SampleRecord]:
        content = self._path.read_bytes() if self._path.is_file() else b""
        found, kept = {}, 0
        for line in content.splitlines(keepends=True):
            try:
                record = msgspec.json.decode(line, type=SampleRecord)
            except (msgspec.DecodeError, UnicodeDecodeError):
                break
            if not line.endswith(b"\n"):
                break
            found[record.index] = record
            kept += len(line)
        if kept < len(content):
            os.truncate(self._path, kept)
        return found


def content_key(*parts: object) -> str:
    """Returns a short name for everything that decides what is measured; parts are of JSON's types."""
    digest = hashlib.blake2b(msgspec.json.encode((FORMAT, *parts)), digest_size=12)
    return digest.hexdigest()


def _unwritable(path: Path, error: OSError) -> str:
    return f"The finished samples cannot be kept in {str(path)!r} ({error.strerror}); point FUSESCOPE_CACHE to a folder with room."
