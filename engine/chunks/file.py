"""One chunk's KV as a thing to read layers from, in a file or in memory. Knows nothing of the store's folder or bounds."""

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Literal, Protocol

import torch
from torch import Tensor

from engine.chunks.key import ChunkKey
from engine.chunks.layout import ChunkTensors, DamagedFile, Layout, raw_bytes, torch_dtype
from engine.chunks.verify import FileHandle, Signature, verify_file
from engine.errors import StoreError

Source = Literal["disk", "memory"]
OpenFile = Callable[[Path], FileHandle]


class StoredChunk:
    """A chunk's KV, immutable and safe to read from many threads at once.

    A chunk on disk is opened at the first read and stays open until `close()` or until nobody holds it any more, so
    that eviction does not hurt a running request; reading after `close()` opens it again.

    Args:
        key: what the chunk is; `hash` is its own, kept because computing it reads all token ids.
        token_scores: float32 [2, L, n], held in memory: `importance`, each token's KVzip score, and `key_norms`, the mean over
            KV heads of the L2 norm of its K.
        time_s: what computing the chunk took, 0 where that is not known.
    """

    def __init__(self, key: ChunkKey, token_scores: Tensor, time_s: float, body: "_Body") -> None:
        self.key = key
        self.hash = key.hash
        self.num_tokens = key.num_tokens
        self.importance, self.key_norms = token_scores
        self.time_s = time_s
        self.source: Source = body.source
        self.size_bytes = body.size_bytes
        self._body = body
        self._layout = Layout.of(key)
        self._shape = (key.num_tokens, key.num_kv_heads, key.head_dim)
        self._dtype = torch_dtype(key)
        self._closed = False

    def read_keys(self, layer: int, out: Tensor) -> int:
        """Fills `out` with one layer's K, before rotary embedding, and returns the bytes read. Raises StoreError.

        Args:
            out: [n, Hkv, D] of the stored dtype, contiguous on the CPU; may be a row range of a bigger tensor. What is
                in it after a StoreError is undefined.
        """
        self._check_layer(layer)
        return self._read(self._layout.keys_offset(layer), out)

    def read_values(self, layer: int, out: Tensor) -> int:
        """Fills `out`, as in `read_keys`, with one layer's V and returns the bytes read. Raises StoreError."""
        self._check_layer(layer)
        return self._read(self._layout.values_offset(layer), out)

    def open(self) -> None:
        """Opens the file now, so that losing its name does not hurt later reads. Raises StoreError."""
        self._closed = False
        try:
            self._body.open()
        except OSError as error:
            raise StoreError(f"The chunk {self._body.name} cannot be opened ({error.strerror}); compute it again.") from error

    def drop_pages(self) -> None:
        """Lets the next read of a chunk on disk come from the disk, not from the system's page cache. Raises StoreError."""
        try:
            self._body.drop_pages()
        except OSError as error:
            raise StoreError(f"The chunk {self._body.name} cannot be opened ({error.strerror}); compute it again.") from error

    def close(self) -> None:
        """Lets go of the open file once no thread reads from it; harmless when repeated."""
        self._closed = True
        self._body.close()

    @property
    def in_use(self) -> bool:
        """Returns whether the chunk was handed out or read and not closed since."""
        return not self._closed

    @property
    def signature(self) -> Signature | None:
        """Returns the verified file's signature, None in memory."""
        return self._body.signature

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < self.key.num_layers:
            raise ValueError(f"Layer {layer} was asked of a chunk; it has the layers 0 to {self.key.num_layers - 1}.")

    def _read(self, offset: int, out: Tensor) -> int:
        if tuple(out.shape) != self._shape or out.dtype != self._dtype or out.device.type != "cpu" or not out.is_contiguous():
            given = f"{out.dtype} {tuple(out.shape)} on {out.device}"
            raise ValueError(f"A chunk is to be read into {given}; it must be {self._dtype} {self._shape}, contiguous on the CPU.")
        self._closed = False
        try:
            self._body.read(offset, raw_bytes(out))
        except OSError as error:
            raise StoreError(f"The chunk {self._body.name} cannot be read ({error.strerror}); compute it again.") from error
        return out.nbytes


def hold_chunk(key: ChunkKey, tensors: ChunkTensors) -> StoredChunk:
    """Returns a chunk that lives in memory, in a copy of `tensors`."""
    owned = ChunkTensors(tensors.keys.clone(), tensors.values.clone(), tensors.token_scores)
    return StoredChunk(key, owned.token_scores, tensors.time_s, _MemoryBody(Layout.of(key), owned))


def open_chunk(path: Path, key: ChunkKey, trusted: Signature | None, open_file: OpenFile = FileHandle) -> StoredChunk:
    """Returns the chunk in a file, verified and closed again, and marks the file as used now.

    Args:
        trusted: signature of the file as this process last verified it; its checksum is not computed again.
        open_file: how the chunk's layers will be read; verifying goes through the page cache.
    Raises:
        DamagedFile: the file is not the key's chunk. OSError: it cannot be opened or read.
    """
    file = FileHandle(path)
    # Before the slow part, so that another process sees the use and evicts something else.
    file.mark_used()
    signature = file.signature
    verified = verify_file(file, key, trusted)
    scores = torch.empty(2, key.num_layers, key.num_tokens, dtype=torch.float32)
    if not file.read_exactly(raw_bytes(scores), verified.data_start):
        raise DamagedFile("it is too short")
    return StoredChunk(key, scores, verified.time_s, _DiskBody(path, key, signature, verified.data_start, open_file))


class _Body(Protocol):
    """Where a chunk's bytes are; offsets are those of the data area."""

    source: Source
    name: str
    size_bytes: int
    signature: Signature | None

    def open(self) -> None: ...

    def drop_pages(self) -> None: ...

    def read(self, offset: int, buffer: memoryview) -> None: ...

    def close(self) -> None: ...


class _MemoryBody:
    """A chunk's tensors, which nobody else holds."""

    source: Source = "memory"
    name = "in memory"
    signature: Signature | None = None

    def __init__(self, layout: Layout, tensors: ChunkTensors) -> None:
        self.size_bytes = tensors.size_bytes
        self._layout = layout
        self._tensors = tensors

    def open(self) -> None:
        """Does nothing: memory is always open."""

    def drop_pages(self) -> None:
        """Does nothing: there is no disk to read from."""

    def read(self, offset: int, buffer: memoryview) -> None:
        """Copies the tensor that starts at `offset` of the data area."""
        layer, is_value = divmod((offset - self._layout.scores_bytes) // self._layout.tensor_bytes, 2)
        tensor = self._tensors.values if is_value else self._tensors.keys
        buffer[:] = raw_bytes(tensor[layer])

    def close(self) -> None:
        """Does nothing: the memory goes with its last holder."""


class _DiskBody:
    """A verified file. Each reader holds the handle, so that closing never pulls it away from under one."""

    source: Source = "disk"

    def __init__(self, path: Path, key: ChunkKey, signature: Signature, data_start: int, open_file: OpenFile) -> None:
        self.name = path.name
        self.size_bytes = signature.size_bytes
        self.signature: Signature | None = signature
        self._path = path
        self._key = key
        self._data_start = data_start
        self._open_file = open_file
        self._file: FileHandle | None = None
        self._lock = Lock()

    def open(self) -> None:
        """Opens the file unless it is open. Raises OSError, StoreError."""
        self._get_file()

    def drop_pages(self) -> None:
        """Drops the file's pages. Raises OSError, StoreError."""
        self._get_file().drop_pages()

    def read(self, offset: int, buffer: memoryview) -> None:
        """Fills `buffer` from `offset` of the data area. Raises OSError, StoreError."""
        file = self._get_file()
        if not file.read_exactly(buffer, self._data_start + offset):
            raise StoreError(f"The chunk {self.name} became shorter than it was; compute it again.")

    def close(self) -> None:
        """Forgets the file, which closes after its last reader; one that was evicted stays, as it could not be had again."""
        with self._lock:
            if self._file is not None and self._file.has_name:
                self._file = None

    def _get_file(self) -> FileHandle:
        with self._lock:
            if self._file is None:
                self._file = self._reopen()
            return self._file

    def _reopen(self) -> FileHandle:
        file = self._open_file(self._path)
        signature = file.signature
        if signature != self.signature:
            # Somebody may have evicted the chunk and stored it anew: the same content in another file.
            try:
                self._data_start = verify_file(file, self._key, trusted=None).data_start
            except DamagedFile as error:
                raise StoreError(f"The chunk {self.name} was changed and {error}; compute it again.") from error
            self.signature = signature
        return file
