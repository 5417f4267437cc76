"""How one chunk lies in its file: the tensors' order, the header and the checksum. Knows nothing of folders.

The file is a safetensors file: 8 bytes with the header's length, the header, and the data area
    importance | key_norms | layer.000.k | layer.000.v | layer.001.k | ...
so that one layer is one stretch of bytes. L layers, n tokens, Hkv KV heads, D head size.
"""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from engine.chunks.key import DTYPE_BYTES, FORMAT, ChunkKey, hash_ids
from engine.errors import StoreError

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 2**20
CHECKSUM_BYTES = 16
_FILE_DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


class DamagedFile(StoreError):
    """A file that is not the chunk its name promises; the message is the reason, without a subject."""


@dataclass(frozen=True, eq=False, slots=True)
class ChunkTensors:
    """One chunk's KV, contiguous on the CPU.

    Args:
        keys, values: [L, n, Hkv, D], keys un-rotated.
        token_scores: float32 [2, L, n], the tokens' KVzip scores and the keys' norms.
        time_s: what computing them took.
    """

    keys: Tensor
    values: Tensor
    token_scores: Tensor
    time_s: float = 0.0

    @property
    def size_bytes(self) -> int:
        """Returns the bytes of all tensors."""
        return self.keys.nbytes + self.values.nbytes + self.token_scores.nbytes


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tensors of a chunk lie in the data area, in bytes."""

    scores_bytes: int
    tensor_bytes: int
    num_layers: int

    @classmethod
    def of(cls, key: ChunkKey) -> "Layout":
        """Returns the layout that a key implies; a file that has another one is damaged."""
        row_bytes = key.num_kv_heads * key.head_dim * DTYPE_BYTES[key.dtype]
        return cls(2 * 4 * key.num_layers * key.num_tokens, key.num_tokens * row_bytes, key.num_layers)

    @property
    def data_bytes(self) -> int:
        """Returns the size of the whole data area."""
        return self.scores_bytes + 2 * self.num_layers * self.tensor_bytes

    def keys_offset(self, layer: int) -> int:
        """Returns where layer `layer`'s K starts."""
        return self.scores_bytes + 2 * layer * self.tensor_bytes

    def values_offset(self, layer: int) -> int:
        """Returns where layer `layer`'s V starts, right behind its K."""
        return self.keys_offset(layer) + self.tensor_bytes


def torch_dtype(key: ChunkKey) -> torch.dtype:
    """Returns the dtype of a chunk's K and V."""
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[key.dtype]


def raw_bytes(tensor: Tensor) -> memoryview:
    """Returns the memory of a contiguous CPU tensor as bytes, shared with it; works for bfloat16 too."""
    return tensor.detach().view(-1).view(torch.uint8).numpy().data


def prepare_tensors(key: ChunkKey, keys: Tensor, values: Tensor, importance: Tensor, time_s: float = 0.0) -> ChunkTensors:
    """Returns K and V on the CPU with the keys' norms: mean over KV heads of the L2 norm of each token's K.

    Shares memory with `keys` and `values` where they are contiguous on the CPU. Raises ValueError on a shape or dtype
    that is not the key's.

    Args:
        importance: float32 [L, n], KVzip scores.
    """
    shape = (key.num_layers, key.num_tokens, key.num_kv_heads, key.head_dim)
    wanted = (("keys", keys, torch_dtype(key), shape), ("values", values, torch_dtype(key), shape))
    for name, tensor, dtype, size in (*wanted, ("KVzip scores", importance, torch.float32, shape[:2])):
        if tuple(tensor.shape) != size or tensor.dtype != dtype:
            raise ValueError(f"A chunk's {name} are {tensor.dtype} {tuple(tensor.shape)}; its key says {dtype} {size}.")
    keys, values = keys.detach().cpu().contiguous(), values.detach().cpu().contiguous()
    norms = torch.linalg.vector_norm(keys, dim=-1, dtype=torch.float32).mean(dim=-1)
    return ChunkTensors(keys, values, torch.stack([importance.detach().cpu(), norms]), time_s)


def encode(key: ChunkKey, tensors: ChunkTensors) -> bytes:
    """Returns the whole file of a chunk."""
    named = {"importance": tensors.token_scores[0], "key_norms": tensors.token_scores[1]}
    for layer in range(key.num_layers):
        named[f"layer.{layer:03d}.k"] = tensors.keys[layer]
        named[f"layer.{layer:03d}.v"] = tensors.values[layer]
    checksum = blake2b(digest_size=CHECKSUM_BYTES)
    for tensor in named.values():
        checksum.update(raw_bytes(tensor))
    return safetensors.torch.save(named, metadata=_metadata(key, checksum.hexdigest(), tensors.time_s))


class Stated(NamedTuple):
    """What a header says of its file: the data area's checksum, and what computing the chunk took, 0 where it is not said."""

    checksum: str
    time_s: float


def read_header(header: bytes, key: ChunkKey) -> Stated:
    """Returns what a header states. Raises DamagedFile where the header is not this chunk's."""
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError):
        raise DamagedFile("its header cannot be read") from None
    metadata = fields.pop("__metadata__", None) if isinstance(fields, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise DamagedFile(f"it is not in the format {FORMAT}")
    if metadata.get("hash") != key.hash:
        raise DamagedFile("it holds another chunk")
    if fields != _expected_entries(key):
        raise DamagedFile("its tensors have other shapes, types or places than its chunk's")
    try:
        time_s = float(metadata.get("time_s", 0.0))
    except (TypeError, ValueError):
        raise DamagedFile("its header cannot be read") from None
    return Stated(str(metadata.get("checksum")), time_s if 0.0 <= time_s < math.inf else 0.0)


def _expected_entries(key: ChunkKey) -> dict[str, dict[str, object]]:
    """Returns what the header has to say of every tensor."""
    layout = Layout.of(key)
    shape = [key.num_tokens, key.num_kv_heads, key.head_dim]
    entries: dict[str, dict[str, object]] = {}
    middle = layout.scores_bytes // 2
    for name, offsets in (("importance", [0, middle]), ("key_norms", [middle, layout.scores_bytes])):
        entries[name] = {"dtype": "F32", "shape": [key.num_layers, key.num_tokens], "data_offsets": offsets}
    for layer in range(key.num_layers):
        for part, start in (("k", layout.keys_offset(layer)), ("v", layout.values_offset(layer))):
            offsets = [start, start + layout.tensor_bytes]
            entries[f"layer.{layer:03d}.{part}"] = {"dtype": _FILE_DTYPES[key.dtype], "shape": shape, "data_offsets": offsets}
    return entries


def _metadata(key: ChunkKey, checksum: str, time_s: float) -> dict[str, str]:
    """Returns the header's metadata: what decides (format, hash, checksum) and what a person may want to read."""
    told = {name: str(getattr(key, name)) for name in ("model", "revision", "dtype", "rope", "context")}
    counts = {name: str(getattr(key, name)) for name in ("num_tokens", "num_layers", "num_kv_heads", "head_dim")}
    # A path may hold bytes that are not UTF-8 (lone surrogates), which a header cannot; a long text would outgrow it.
    told = {name: text.encode("utf-8", "backslashreplace").decode()[:4096] for name, text in told.items()}
    hashes = {"hash": key.hash, "prefix_hash": hash_ids(key.prefix_ids), "token_hash": hash_ids(key.token_ids)}
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return {"format": FORMAT, **hashes, **told, **counts, "checksum": checksum, "time_s": f"{time_s:.4f}", "created": created}
