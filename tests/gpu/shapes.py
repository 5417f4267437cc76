"""Sizes of the models that the GPU script runs; needs nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a Llama-like model and its chunks."""

    num_layers: int
    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    inner: int
    vocabulary: int
    critical_layer: int
    chunk_tokens: int


LLAMA_8B = Shape(32, 4096, 32, 8, 128, 14_336, 128_256, 13, 512)
SMALL = Shape(4, 512, 8, 2, 64, 1024, 1000, 2, 96)
TINY = Shape(3, 96, 6, 2, 16, 128, 300, 1, 24)
