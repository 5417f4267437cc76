"""Compiles what the wrappers launch, for GPUs that are not here: `python tests/kernels/compile_kernels.py [--all]`.

The launches are recorded from calls on CPU tensors, so signatures and tiles are the real ones. Prints one JSON line per compiled
kernel: registers a thread, bytes a thread spills to memory, shared memory of a program. Needs a process without TRITON_INTERPRET.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kernels.batch import KeysValues, Pages, RowBatch, row_batch
from kernels.query_token_scores import REDUCTIONS, query_token_scores
from kernels.rotate_scatter_keys import rotate_keys, rotate_scatter_keys
from kernels.sparse_prefill_attention import sparse_prefill_attention
from kernels.tiles import Capability, attention_tile, score_tile
from kernels.topk_select import topk_select

ARCHITECTURES: tuple[Capability, ...] = ((8, 0), (8, 6), (9, 0), (12, 0))
SHARED_LIMIT_BYTES = {(8, 0): 163 * 1024, (8, 6): 99 * 1024, (9, 0): 227 * 1024, (10, 0): 227 * 1024, (12, 0): 99 * 1024}
POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.int32: "*i32", torch.int64: "*i64"}


class Launch(NamedTuple):
    """One recorded launch of a kernel: its arguments and the compiler's options."""

    kernel: triton.JITFunction
    args: tuple[object, ...]
    options: dict[str, object]


class Case(NamedTuple):
    """A call of a wrapper; `is_core` where the tests compile it, not only --all."""

    name: str
    call: Callable[[Capability], object]
    is_core: bool = True


def record(call: Callable[[], object]) -> list[Launch]:
    """Returns the launches of a call, none of which runs."""
    launches = []

    def run(self, *args, grid, warmup, **options):
        launches.append(Launch(self, args, options))

    with mock.patch.object(triton.JITFunction, "run", run):
        call()
    return launches


def compile_launch(launch: Launch, capability: Capability) -> dict[str, object]:
    """Compiles to machine code, arguments specialised as at a launch, and returns what the compiler says of it."""
    kernel = launch.kernel
    names = kernel.arg_names
    values = dict(zip(names, launch.args, strict=False)) | {k: v for k, v in launch.options.items() if k in names}
    options = {k: v for k, v in launch.options.items() if k not in names}
    fixed = {p.name for p in kernel.params if p.do_not_specialize}
    signature, constants, attributes = {}, {}, {}
    for i, parameter in enumerate(kernel.params):
        name, value = parameter.name, values[parameter.name]
        if parameter.is_constexpr or value is None or (type(value) is int and value == 1 and name not in fixed):
            signature[name], constants[name] = "constexpr", value
            continue
        is_tensor = isinstance(value, torch.Tensor)
        signature[name] = POINTERS[value.dtype] if is_tensor else "fp32" if isinstance(value, float) else "i32"
        if is_tensor or (isinstance(value, int) and value % 16 == 0 and name not in fixed):
            attributes[(i,)] = [["tt.divisibility", 16]]
    arch = capability[0] * 10 + capability[1]
    source = ASTSource(kernel, signature, constants, attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    return {"arch": arch, "kernel": kernel.__name__, **resources(compiled.asm["cubin"]), "shared_bytes": compiled.metadata.shared}


def resources(cubin: bytes) -> dict[str, int]:
    """Returns registers and spilled bytes of a thread; the stack holds nothing but spills, as kernels have no local arrays."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tool = triton.knobs.nvidia.cuobjdump.path
        text = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    return {"registers": int(found[1]), "spill_bytes": int(found[2])}


def attention_case(dim: int, dtype: torch.dtype, group: int = 4, is_core: bool = False, splits: int = 1, **options) -> Case:
    """A call of the attention kernel on two requests, paged where `page` is given."""
    page = options.pop("page", 0)

    def call(capability: Capability) -> object:
        positions = [torch.arange(0, 96, 2), torch.arange(64)]
        pages = Pages(torch.zeros(2, 16, dtype=torch.int32), page) if page else None
        rows = row_batch(positions, "cpu", None if page else [0, 96], pages)
        query, cache = torch.zeros(112, 2 * group, dim, dtype=dtype), torch.zeros(256, 2, dim, dtype=dtype)
        tile = attention_tile(capability, dim, query.element_size())
        return sparse_prefill_attention(query, cache, cache, rows, tile=tile, num_splits=splits, **options)

    extra = "".join(f" {name} {value}" for name, value in (("page", page), ("splits", splits), *options.items()) if value)
    return Case(f"attention D {dim} {str(dtype).removeprefix('torch.')} group {group}{extra}", call, is_core)


def decode_case(dim: int) -> Case:
    """One row of one request over a whole cache whose keys lie head by head, as a decode step of fixed memory launches it."""

    def call(capability: Capability) -> object:
        position, cache = torch.zeros(1, dtype=torch.int64), torch.zeros(2, 512, dim, dtype=torch.bfloat16).transpose(0, 1)
        rows = RowBatch(position, (1,), (512,), 512)
        tile = attention_tile(capability, dim)
        return sparse_prefill_attention(torch.zeros(1, 8, dim, dtype=torch.bfloat16), cache, cache, rows, tile=tile, num_splits=2)

    return Case(f"decode D {dim}", call)


def merge_case(dim: int, page: int, is_core: bool) -> Case:
    """A call of the merging kernel in bfloat16, without pages on a cache whose keys lie head by head."""

    def call(capability: Capability) -> object:
        kv = [KeysValues(*torch.zeros(2, n, 8, dim, dtype=torch.bfloat16)) for n in (48, 16, 64)]
        if not page:
            kv[2] = kv[2]._replace(keys=torch.zeros(8, 64, dim, dtype=torch.bfloat16).transpose(0, 1))
        pages = Pages(torch.zeros(1, 64 // page, dtype=torch.int32), page) if page else None
        source, table = torch.zeros(64, dtype=torch.int32), torch.zeros(64, dim // 2, dtype=torch.bfloat16)
        return rotate_scatter_keys(kv[0], kv[1], source, table, table, kv[2], pages)

    return Case(f"merge D {dim} page {page}", call, is_core)


def rotate_case(dim: int) -> Case:
    """A call of the rotation alone, with one table for all heads."""
    raw, table = torch.zeros(64, 32, dim, dtype=torch.bfloat16), torch.zeros(64, 1, dim // 2, dtype=torch.bfloat16)
    return Case(f"rotate D {dim}", lambda capability: rotate_keys(raw, table, table, torch.zeros_like(raw)), False)


def score_case(dim: int, dtype: torch.dtype, reduction: str, is_core: bool = False) -> Case:
    """A call of the scoring kernels."""

    def call(capability: Capability) -> object:
        query, keys = torch.zeros(24, 8, dim, dtype=dtype), torch.zeros(256, 2, dim, dtype=dtype)
        return query_token_scores(query, keys, torch.arange(24), reduction, score_tile(capability, dim, query.element_size()), num_splits=2)

    return Case(f"scores D {dim} {str(dtype).removeprefix('torch.')} {reduction}", call, is_core)


def cases() -> Iterator[Case]:
    """Yields every call that is compiled; those of the tests hold each kernel at least once."""
    bf16 = torch.bfloat16
    yield attention_case(128, bf16, is_core=True, splits=4, page=16, window=64, sinks=4)
    yield decode_case(128)
    yield merge_case(128, page=16, is_core=True)
    yield merge_case(64, page=0, is_core=True)
    yield score_case(128, bf16, "mean", is_core=True)
    yield score_case(128, bf16, "norm", is_core=True)
    yield Case("topk", lambda capability: topk_select(torch.zeros(5000), 100))
    for dim in (64, 80, 96, 128, 256):
        for dtype in (bf16, torch.float32):
            yield attention_case(dim, dtype, group=8)
            yield from (score_case(dim, dtype, reduction) for reduction in REDUCTIONS)
        yield attention_case(dim, bf16, page=1, window=64, sinks=4)
        yield merge_case(dim, page=0, is_core=False)
        yield rotate_case(dim)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every head size and number type, not only those of the tests")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--arch", type=int, action="append", help="80, 86, 90, 100 or 120, again for several; the tests' four otherwise")
    args = parser.parse_args()
    architectures = [divmod(arch, 10) for arch in args.arch] if args.arch else ARCHITECTURES
    for case in cases():
        if (case.is_core or args.all) and case.name.startswith(args.only):
            for capability in architectures:
                for launch in record(lambda case=case, capability=capability: case.call(capability)):
                    line = {"case": case.name, **compile_launch(launch, capability)}
                    print(json.dumps(line | {"shared_limit_bytes": SHARED_LIMIT_BYTES[capability]}), flush=True)


if __name__ == "__main__":
    main()
