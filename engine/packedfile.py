"""Frozen values as files: gzip-compressed JSON, arrays packed as base64, checked for version, types and sizes on the way in."""

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import pybase64

from engine.errors import BadRunFile

T = TypeVar("T")


class _Version(msgspec.Struct):
    format: str


class _Array(msgspec.Struct):
    dtype: str
    shape: list[int]
    b64: str


@dataclass(frozen=True, slots=True)
class PackedFile(Generic[T]):
    """A kind of file that holds one value.

    Args:
        version: written into the file and asked of it.
        kind: type of the value; noun, suffix: what messages call the file and its name's end.
        dtypes: of the arrays it may hold.
        max_packed_bytes, max_plain_bytes: bounds of what is read.
    """

    version: str
    kind: type[T]
    noun: str
    suffix: str
    dtypes: tuple[str, ...]
    max_packed_bytes: int
    max_plain_bytes: int

    def dump(self, value: T) -> bytes:
        """Returns the file's bytes; the same value gives the same bytes."""
        plain = msgspec.json.encode({"format": self.version, "run": value}, enc_hook=self._pack)
        return gzip.compress(plain, compresslevel=6, mtime=0)

    def save(self, value: T, path: Path) -> None:
        """Writes the file; a half-written one never stands under its name."""
        partial = path.with_name(path.name + ".part")
        partial.write_bytes(self.dump(value))
        partial.replace(path)

    def load(self, path: Path) -> T:
        """Returns the value of a file. Raises BadRunFile with one sentence."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadRunFile(f"The {self.noun} {path.name!r} cannot be read: {error.strerror}.") from None
        return self.parse(data)

    def parse(self, data: bytes) -> T:
        """Returns the value that `dump` wrote. Raises BadRunFile with one sentence."""
        if len(data) > self.max_packed_bytes:
            raise BadRunFile(f"The {self.noun} has {len(data):,} bytes; at most {self.max_packed_bytes:,} are read.")
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            plain = unpack.decompress(data, self.max_plain_bytes)
        except zlib.error:
            raise BadRunFile(f"This is not a {self.noun}: it is not gzip-compressed; choose a {self.suffix} saved by Fusescope.") from None
        if not unpack.eof:
            raise BadRunFile(f"The {self.noun} is cut short or unpacks to more than is allowed; save it again.")
        try:
            found = msgspec.json.decode(plain, type=_Version).format
            if found != self.version:
                raise BadRunFile(f"The {self.noun} is of the version {found[:40]!r}; this Fusescope reads {self.version!r}.")
            body = msgspec.defstruct("Body", [("run", self.kind)])
            value: T = msgspec.json.decode(plain, type=body, dec_hook=self._unpack).run
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadRunFile(f"The {self.noun} does not hold a valid run: {str(error)[:200]}.") from None
        return value

    def _pack(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            plain = np.ascontiguousarray(value)
            assert plain.dtype.name in self.dtypes, f"a {self.noun} holds no arrays of {plain.dtype}"
            return {"dtype": plain.dtype.name, "shape": list(plain.shape), "b64": pybase64.b64encode(plain.tobytes()).decode()}
        # What msgspec asks its hooks to raise for a type that they do not know.
        raise NotImplementedError(f"a {self.noun} cannot hold a {type(value).__name__}")

    def _unpack(self, kind: type, value: Any) -> Any:
        if kind is not np.ndarray:
            raise NotImplementedError(f"a {self.noun} cannot hold a {kind.__name__}")
        packed = msgspec.convert(value, type=_Array)
        if packed.dtype not in self.dtypes:
            raise ValueError(f"array of unknown type {packed.dtype[:20]!r}")
        raw = pybase64.b64decode(packed.b64, validate=True)
        if any(size < 0 for size in packed.shape) or math.prod(packed.shape) * np.dtype(packed.dtype).itemsize != len(raw):
            raise ValueError(f"array of shape {packed.shape} with {len(raw)} bytes")
        return np.frombuffer(raw, dtype=packed.dtype).reshape(packed.shape)
