"""Runs as files: gzip-compressed JSON, arrays packed as base64, checked on the way in."""

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pybase64

from engine.errors import BadRunFile
from engine.types import MethodRun, Run

FORMAT = "fusescope-run/1"
MAX_PACKED_BYTES, MAX_PLAIN_BYTES = 32 * 2**20, 256 * 2**20
_DTYPES = ("int32", "int64", "float32", "uint8")


class _File(msgspec.Struct, frozen=True):
    format: str
    run: Run


def dump_run(run: Run) -> bytes:
    """Returns a run as the bytes of a `fusescope-run/1` file; the same run gives the same bytes."""
    plain = msgspec.json.encode(_File(FORMAT, run), enc_hook=_pack)
    return gzip.compress(plain, compresslevel=6, mtime=0)


def save_run(run: Run, path: Path) -> None:
    """Writes a run file; a half-written one never stands under its name."""
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(dump_run(run))
    partial.replace(path)


def load_run(path: Path) -> Run:
    """Returns the run of a file. Raises BadRunFile with one sentence."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadRunFile(f"The run file {path.name!r} cannot be read: {error.strerror}.") from None
    return parse_run(data)


def parse_run(data: bytes) -> Run:
    """Returns the run that `dump_run` wrote, checked for version, types and sizes. Raises BadRunFile with one sentence."""
    if len(data) > MAX_PACKED_BYTES:
        raise BadRunFile(f"The run file has {len(data):,} bytes; at most {MAX_PACKED_BYTES:,} are read.")
    try:
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        plain = unpack.decompress(data, MAX_PLAIN_BYTES)
    except zlib.error:
        raise BadRunFile("This is not a run file: it is not gzip-compressed; choose a .run.json.gz saved by Fusescope.") from None
    if not unpack.eof:
        raise BadRunFile("The run file is cut short or unpacks to more than is allowed; save it again.")
    try:
        version = msgspec.json.decode(plain, type=_Version).format
        if version != FORMAT:
            raise BadRunFile(f"The run file is of the version {version[:40]!r}; this Fusescope reads {FORMAT!r}.")
        run = msgspec.json.decode(plain, type=_File, dec_hook=_unpack).run
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRunFile(f"The run file does not hold a valid run: {str(error)[:200]}.") from None
    _check(run)
    return run


class _Version(msgspec.Struct):
    format: str


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value)
        assert plain.dtype.name in _DTYPES, f"a run holds no arrays of {plain.dtype}"
        return {"dtype": plain.dtype.name, "shape": list(plain.shape), "b64": pybase64.b64encode(plain.tobytes()).decode()}
    raise NotImplementedError(f"a run cannot hold a {type(value).__name__}")


def _unpack(kind: type, value: Any) -> Any:
    if kind is not np.ndarray:
        raise NotImplementedError(f"a run cannot hold a {kind.__name__}")
    packed = msgspec.convert(value, type=_Packed)
    if packed.dtype not in _DTYPES:
        raise ValueError(f"array of unknown type {packed.dtype[:20]!r}")
    raw = pybase64.b64decode(packed.b64, validate=True)
    if any(size < 0 for size in packed.shape) or math.prod(packed.shape) * np.dtype(packed.dtype).itemsize != len(raw):
        raise ValueError(f"array of shape {packed.shape} with {len(raw)} bytes")
    return np.frombuffer(raw, dtype=packed.dtype).reshape(packed.shape)


class _Packed(msgspec.Struct):
    dtype: str
    shape: list[int]
    b64: str


def _check(run: Run) -> None:
    total = len(run.tokens)
    if not 0 <= run.system_len <= run.question_start <= total or len(run.token_ids) != total:
        raise BadRunFile(f"The run file's parts do not fit together: {total} tokens, question at {run.question_start}.")
    if any(not run.system_len <= chunk.start <= chunk.stop <= run.question_start for chunk in run.chunks):
        raise BadRunFile("The run file has a chunk outside the document part.")
    if any(not 0 <= a <= b <= total for a, b in (run.question_span, *run.answer_spans)):
        raise BadRunFile("The run file has a span outside the prompt.")
    for method in run.methods:
        _check_method(method, run)


def _check_method(method: MethodRun, run: Run) -> None:
    for name, positions in (("rows", method.rows), ("ranking", method.ranking), ("anchors", method.anchors)):
        if positions is not None and positions.size and not 0 <= positions.min() <= positions.max() < len(run.tokens):
            raise BadRunFile(f"The run file's {method.method!r} has {name} outside the prompt.")
    for name, values in (("ranking", method.ranking), ("scores", method.scores)):
        if values is not None and values.shape != (run.num_doc_tokens,):
            raise BadRunFile(f"The run file's {method.method!r} has {name} of {values.shape}; {run.num_doc_tokens} are needed.")
    if method.kv_distance is not None and method.kv_distance.shape != (run.num_layers, 2):
        shape = method.kv_distance.shape
        raise BadRunFile(f"The run file's {method.method!r} has KV distances of {shape}; [{run.num_layers}, 2] are needed.")
