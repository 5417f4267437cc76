"""How kernels are cut into programs, by GPU architecture and head size. Knows nothing of Triton.

Shared memory of one program on the architectures: 163 KiB (8.0), 99 KiB (8.6, 8.9, 12.x), 227 KiB (9.0, 10.x).
"""

from typing import NamedTuple

Capability = tuple[int, int]


class Tile(NamedTuple):
    """One program's share: `rows` stacked query rows, `keys` keys at a time; warps and pipeline stages of the compiler."""

    rows: int
    keys: int
    num_warps: int
    num_stages: int


# Fewer key blocks than this are not worth a program of their own, nor more splits the sum over them.
MIN_BLOCKS_OF_SPLIT, MAX_SPLITS = 4, 32

# Small, so that sizes the interpreter can afford still take several programs, each several key blocks.
INTERPRETED = Tile(64, 32, 4, 1)

# For numbers of 16 bits, by family and head size up to which a tile is meant.
_ATTENTION = {
    "8.0": {64: Tile(128, 64, 8, 3), 128: Tile(128, 64, 8, 2), 256: Tile(64, 32, 8, 2)},
    "8.6": {64: Tile(64, 64, 4, 2), 128: Tile(64, 32, 4, 2), 256: Tile(64, 32, 8, 2)},
    "9.0": {64: Tile(128, 128, 8, 2), 128: Tile(128, 64, 8, 3), 256: Tile(128, 64, 8, 2)},
    "10.0": {64: Tile(128, 128, 8, 2), 128: Tile(128, 64, 8, 3), 256: Tile(128, 64, 8, 2)},
}
# Multiplied three times over by the tensor cores, each number in two parts: registers are what runs out.
_ATTENTION_FLOAT32 = {64: Tile(64, 32, 4, 1), 128: Tile(32, 32, 4, 1), 256: Tile(32, 16, 4, 1)}


def _family(capability: Capability) -> str:
    """Returns the row of the table whose shared memory and tensor cores a GPU has."""
    if capability == (8, 0):
        return "8.0"
    if capability[0] == 9:
        return "9.0"
    return "10.0" if capability[0] == 10 else "8.6"


def attention_tile(capability: Capability, head_dim: int, element_size: int = 2) -> Tile:
    """Returns the tile of `sparse_prefill_attention` for numbers of `element_size` bytes."""
    table = _ATTENTION[_family(capability)] if element_size == 2 else _ATTENTION_FLOAT32
    return table[max(64, padded_head(head_dim))]


def score_tile(capability: Capability, head_dim: int, element_size: int = 2) -> Tile:
    """Returns the tile of `query_token_scores`."""
    wide = padded_head(head_dim) == 256 or element_size > 2
    return Tile(64, 32 if wide else 64, 4, 1 if wide or _family(capability) == "8.6" else 2)


def attention_candidates(capability: Capability, head_dim: int) -> list[Tile]:
    """Returns the tiles worth timing on a GPU that is present, the table's own first; some may not fit."""
    own = attention_tile(capability, head_dim)
    others = [Tile(rows, keys, warps, stages) for rows in (64, 128) for keys in (32, 64, 128) for warps in (4, 8) for stages in (2, 3)]
    return [own, *(tile for tile in others if tile != own)]


def choose_splits(programs: int, key_blocks: int, processors: int) -> int:
    """Returns how many programs share a block's keys, so that few rows over many keys still occupy the GPU."""
    return max(1, min(processors // programs, key_blocks // MIN_BLOCKS_OF_SPLIT, MAX_SPLITS))


def padded_head(head_dim: int) -> int:
    """Returns the power of two that a head of `head_dim` values is worked on as, at least 16."""
    return max(16, 1 << (head_dim - 1).bit_length())
