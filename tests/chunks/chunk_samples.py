"""Small chunks with known contents for the tests of the chunk store."""

from typing import NamedTuple

import torch
from torch import Tensor

from engine.chunks.file import StoredChunk
from engine.chunks.key import ChunkKey
from engine.chunks.layout import torch_dtype

DTYPES = ("float32", "bfloat16", "float16")


class Sample(NamedTuple):
    key: ChunkKey
    keys: Tensor
    values: Tensor
    importance: Tensor


def make_sample(seed: int = 0, dtype: str = "float32", num_tokens: int = 5, num_layers: int = 3, heads: int = 2, dim: int = 4) -> Sample:
    """Returns a chunk whose tokens and contents follow from `seed`; any bit pattern occurs, NaN included."""
    key = ChunkKey("tiny", "r1", dtype, "default", "alone", (), tuple(range(seed, seed + num_tokens)), num_layers, heads, dim)
    random = torch.Generator().manual_seed(seed)
    width = torch_dtype(key).itemsize
    shape = (2, num_layers, num_tokens, heads, dim * width)
    both = torch.randint(0, 256, shape, generator=random, dtype=torch.uint8).view(torch_dtype(key))
    return Sample(key, both[0], both[1], torch.rand(num_layers, num_tokens, generator=random))


def has_bits_of(chunk: StoredChunk, sample: Sample) -> bool:
    """Returns whether every layer reads back bit for bit."""
    out = torch.full_like(sample.keys[0], float("nan"))
    for layer in range(sample.key.num_layers):
        for read, wanted in ((chunk.read_keys, sample.keys), (chunk.read_values, sample.values)):
            num_bytes = read(layer, out)
            if num_bytes != out.nbytes or not torch.equal(out.view(torch.uint8), wanted[layer].view(torch.uint8)):
                return False
    return True
