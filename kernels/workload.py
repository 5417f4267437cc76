"""Every kernel at one size: its inputs, and the least bytes and products any version of it needs. For checks and timings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.batch import KeysValues, RowBatch, merge_sources, row_batch
from kernels.ops import KernelOps
from kernels.rows import row_set


class Sizes(NamedTuple):
    """One request: context tokens, the share of them recomputed, question tokens, and the model's attention."""

    num_context: int
    ratio: float
    num_question: int
    num_heads: int
    num_kv_heads: int
    head_dim: int

    @property
    def num_tokens(self) -> int:
        """Returns T."""
        return self.num_context + self.num_question

    def positions(self) -> Tensor:
        """Returns int64 [R]: recomputed rows scattered over the context, the same ones always, and the question's."""
        count = max(1, int(self.ratio * self.num_context))
        chosen = torch.randperm(self.num_context, generator=torch.Generator().manual_seed(0))[:count].sort().values
        return torch.cat([chosen, torch.arange(self.num_context, self.num_tokens)])


# What the interpreter runs in a second, and the attention of Llama-3.1-8B over 8,000 tokens.
SMALL, LARGE = Sizes(60, 0.3, 7, 6, 2, 64), Sizes(8_000, 0.3, 60, 32, 8, 128)


@dataclass(frozen=True, eq=False, slots=True)
class Workload:
    """A kernel's work.

    Args:
        op: the operation's name in `KernelOps`.
        run: calls the kernel of a set and returns what it computed; may be called again and again.
        num_bytes: of inputs and outputs, each read or written once.
        num_flops: of its matrix products, 0 where it has none.
        outputs: tensors that `run` fills in place and returns; the checker fills them with NaN before.
    """

    kernel: str
    op: str
    shape: str
    dtype: torch.dtype
    run: Callable[[KernelOps], tuple[Tensor, ...]]
    num_bytes: int
    num_flops: int = 0
    outputs: tuple[Tensor, ...] = ()


def workloads(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> list[Workload]:
    """Returns the work of every kernel, on random numbers that are the same on every device."""
    return [make(sizes, dtype, device) for make in (attention, one_request, merge, rotation, scores, select)]


def attention(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> Workload:
    """Returns the attention of the recomputed rows over all keys."""
    query, keys, values = attention_inputs(sizes, dtype, device)
    rows = row_batch([sizes.positions()], device)
    return Workload(
        "sparse_prefill_attention",
        "sparse_prefill_attention",
        _label(sizes, rows.num_rows[0]),
        dtype,
        lambda ops: ops.sparse_prefill_attention(query, keys, values, rows, None, 0),
        2 * query.nbytes + keys.nbytes + values.nbytes,
        attention_flops(rows, sizes.num_heads, sizes.head_dim),
    )


def one_request(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> Workload:
    """Returns the same attention as the engine asks for it, without a log-sum-exp."""
    query, keys, values = attention_inputs(sizes, dtype, device)
    rows = row_set(sizes.positions().to(device), sizes.num_heads // sizes.num_kv_heads, dtype)

    def run(ops: KernelOps) -> tuple[Tensor, ...]:
        return (ops.selected_attention(query, keys, values, rows),)

    return replace(attention(sizes, dtype, device), kernel="selected_attention", op="selected_attention", run=run)


def rotation(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> Workload:
    """Returns the rotation of all keys of a layer."""
    raw = _normal((sizes.num_tokens, sizes.num_kv_heads, sizes.head_dim), dtype, device, 1)
    angles = _normal((sizes.num_tokens, 1, sizes.head_dim // 2), torch.float32, device, 7)
    cos, sin, out = angles.cos().to(dtype), angles.sin().to(dtype), torch.empty_like(raw)

    def run(ops: KernelOps) -> tuple[Tensor, ...]:
        ops.rotate_keys(raw, cos, sin, out)
        return (out,)

    shape = _label(sizes, sizes.num_tokens)
    return Workload("rotate_keys", "rotate_keys", shape, dtype, run, 2 * raw.nbytes + cos.nbytes + sin.nbytes, outputs=(out,))


def attention_flops(rows: RowBatch, num_heads: int, head_dim: int) -> int:
    """Returns the operations of q k and p v over the keys that rows see, no others."""
    return 4 * num_heads * head_dim * int((rows.positions.long() + 1).sum())


def merge(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> Workload:
    """Returns the rotation and merging of one layer's stored and fresh rows into a cache."""
    positions, half = sizes.positions().to(device), sizes.head_dim // 2
    heads = (sizes.num_kv_heads, sizes.head_dim)
    stored, fresh, cache = (
        KeysValues(*(_normal((n, *heads), dtype, device, seed + i) for i in range(2)))
        for n, seed in ((sizes.num_context, 1), (positions.shape[0], 3), (sizes.num_tokens, 5))
    )
    angles = _normal((sizes.num_tokens, half), torch.float32, device, 7)
    cos, sin, source = angles.cos().to(dtype), angles.sin().to(dtype), merge_sources(positions, sizes.num_tokens)

    def run(ops: KernelOps) -> tuple[Tensor, ...]:
        ops.rotate_scatter_keys(stored, fresh, source, cos, sin, cache, None)
        return tuple(cache)

    num_bytes = 2 * (cache.keys.nbytes + cache.values.nbytes) + cos.nbytes + sin.nbytes + source.nbytes
    return Workload(
        "rotate_scatter_keys", "rotate_scatter_keys", _label(sizes, positions.shape[0]), dtype, run, num_bytes, outputs=tuple(cache)
    )


def scores(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> Workload:
    """Returns the scoring of all keys by the question."""
    query = _normal((sizes.num_question, sizes.num_heads, sizes.head_dim), dtype, device, 1)
    keys = _normal((sizes.num_tokens, sizes.num_kv_heads, sizes.head_dim), dtype, device, 2)
    positions = torch.arange(sizes.num_context, sizes.num_tokens, device=device)
    return Workload(
        "query_token_scores",
        "token_scores",
        _label(sizes, sizes.num_question),
        dtype,
        lambda ops: (ops.token_scores(query, keys, positions, "mean"),),
        query.nbytes + keys.nbytes + 4 * sizes.num_tokens,
        2 * sizes.num_heads * sizes.head_dim * sizes.num_question * sizes.num_tokens,
    )


def select(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> Workload:
    """Returns the choice of the rows to recompute; scores are float32 whatever the type, many of them equal."""
    values = (_normal((sizes.num_context,), torch.float32, device, 1) * 16).round()
    count = max(1, int(sizes.ratio * sizes.num_context))
    return Workload(
        "topk_select",
        "topk_select",
        f"{count} of {sizes.num_context}",
        torch.float32,
        lambda ops: (ops.topk_select(values, count),),
        values.nbytes + 8 * count,
    )


def attention_inputs(sizes: Sizes, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    query = _normal((sizes.positions().shape[0], sizes.num_heads, sizes.head_dim), dtype, device, 1)
    keys, values = (_normal((sizes.num_tokens, sizes.num_kv_heads, sizes.head_dim), dtype, device, seed) for seed in (2, 3))
    return query, keys, values


def _normal(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=device, dtype=dtype)


def _label(sizes: Sizes, num_rows: int) -> str:
    return f"{num_rows} x {sizes.num_tokens}, heads {sizes.num_heads}/{sizes.num_kv_heads}, D {sizes.head_dim}"
