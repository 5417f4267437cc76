"""The address of a chunk's stored KV. Knows nothing of tensors or files."""

import json
import struct
from dataclasses import dataclass
from hashlib import blake2b

FORMAT = "fusescope-chunk/2"
DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Layer names in a file have three digits, so that their order is the layers' order.
MAX_LAYERS = 1000


@dataclass(frozen=True, slots=True)
class ChunkKey:
    """Everything that a chunk's KV depends on.

    Args:
        model, revision: which weights computed it.
        dtype: "float32", "bfloat16" or "float16".
        rope: description of the rotary settings.
        context: what the chunk saw, "alone", "system", "primed" or "primed-mean".
        prefix_ids: token ids the chunk was computed behind, () where it stood alone.
        token_ids: the chunk's own token ids, at least one.
    """

    model: str
    revision: str
    dtype: str
    rope: str
    context: str
    prefix_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    num_layers: int
    num_kv_heads: int
    head_dim: int

    def __post_init__(self) -> None:
        if self.dtype not in DTYPE_BYTES:
            raise ValueError(f"A chunk's dtype is {self.dtype!r}; it must be one of {', '.join(DTYPE_BYTES)}.")
        if not self.token_ids:
            raise ValueError("A chunk has no tokens; it must have at least one.")
        if not 1 <= self.num_layers <= MAX_LAYERS or self.num_kv_heads < 1 or self.head_dim < 1:
            sizes = f"{self.num_layers} x {self.num_kv_heads} x {self.head_dim}"
            raise ValueError(f"A chunk's layers x heads x head size are {sizes}; they must be positive, with at most {MAX_LAYERS} layers.")

    @property
    def num_tokens(self) -> int:
        """Returns n, the number of the chunk's own tokens."""
        return len(self.token_ids)

    @property
    def hash(self) -> str:
        """Returns 32 hex digits over all fields and FORMAT; equal in every process."""
        fields = [FORMAT, self.model, self.revision, self.dtype, self.rope, self.context]
        sizes = [int(self.num_layers), int(self.num_kv_heads), int(self.head_dim)]
        # A JSON list of quoted strings keeps "a", "bc" apart from "ab", "c".
        text = json.dumps([*fields, hash_ids(self.prefix_ids), hash_ids(self.token_ids), *sizes])
        return blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def hash_ids(token_ids: tuple[int, ...]) -> str:
    """Returns 32 hex digits over a sequence of token ids and its length."""
    return blake2b(struct.pack(f"<{len(token_ids)}q", *token_ids), digest_size=16).hexdigest()
