"""What a decoder model is, as plain values: its sizes, its rotary embedding and where its weights came from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """Rotary embedding: `kind` is default, llama3, linear or yarn; all are fixed, whatever the prompt's length."""

    kind: str
    inv_freq: tuple[float, ...]
    attention_scaling: float = 1.0


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Sizes and provenance of one decoder.

    Args:
        name: hub id, local path, or "SmolLM2-135M-Instruct" for the bundled one.
        revision: commit, or a checksum of the weights where there is none; part of every chunk's address.
        weights: one phrase saying which files were loaded, for the provenance.
        max_context: positions the model was trained for, cut to its sliding window where it has one.
    """

    name: str
    revision: str
    weights: str
    architecture: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_context: int
    norm_eps: float
    rope: RopeSpec
    dtype: str
    eos_token_ids: tuple[int, ...]

    @property
    def group_size(self) -> int:
        """Returns the number of query heads that share one KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def kv_bytes_per_token(self) -> int:
        """Returns the bytes of K and V of one token over all layers."""
        width = {"float32": 4, "bfloat16": 2, "float16": 2}[self.dtype]
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * width
