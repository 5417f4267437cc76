"""Runs every kernel of every set that can be had here against its float32 reference: `python -m kernels.verify [--device cuda]`.

Prints one JSON line. Without a GPU Triton kernels run in its interpreter where TRITON_INTERPRET=1 is set, which triton must
find when it is first imported: hence a process of its own. Times come from the same run, after the check; the interpreter's say nothing of
a GPU and are there to show that it ran.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.ops import KernelOps, KernelsUnavailable, load_ops, reference_ops
from kernels.rates import Rates, measure_rates
from kernels.vector_math import settle_vector_math
from kernels.workload import LARGE, SMALL, Workload, workloads

# Largest absolute difference of numbers about 1 from the float32 reference; indices must be equal.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}
REPEATS = 5


class Check(NamedTuple):
    """One kernel of one set at one size. floor_ms: what bytes and products cost at the measured rates, None without a GPU."""

    kernel: str
    shape: str
    dtype: str
    backend: str
    max_error: float
    is_ok: bool
    time_ms: float
    floor_ms: float | None


def check_kernel(work: Workload, ops: KernelOps, rates: Rates | None) -> Check:
    """Returns how far a set's kernel is from the reference, and its time."""
    # A copy, where the reference and the kernel fill the same tensors.
    expected = [tensor.clone() for tensor in work.run(reference_ops())]
    for tensor in work.outputs:
        tensor.fill_(float("nan"))
    error = max(_largest_error(got, law) for got, law in zip(work.run(ops), expected, strict=True))
    time_ms = median_ms(lambda: work.run(ops), expected[0].device, REPEATS if "interpreted" not in ops.name else 1)
    floor_ms = None if rates is None else rates.floor_ms(work.num_bytes, work.num_flops)
    dtype = str(work.dtype).removeprefix("torch.")
    return Check(work.kernel, work.shape, dtype, ops.name, error, error < TOLERANCE[work.dtype], time_ms, floor_ms)


def median_ms(call: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Returns the median time of a call whose first run, the warm-up, has been; caches are cold on a GPU."""
    if device.type == "cuda":
        from triton.testing import do_bench

        return float(do_bench(call, warmup=10, rep=60, return_mode="median"))
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def verify(device: torch.device) -> dict[str, object]:
    """Returns `ok`, the rows of all checks, and why a set is missing."""
    settle_vector_math()
    rates = measure_rates(device) if device.type == "cuda" else None
    works = workloads(SMALL, torch.float32, device)
    if rates is not None:
        works += workloads(LARGE, torch.bfloat16, device)
    sets, missing = [load_ops("torch", device.type)], []
    try:
        sets.append(load_ops("triton", device.type))
    except KernelsUnavailable as error:
        missing.append(str(error))
    # Where a set has no version of its own it uses the reference, which needs no check against itself.
    law = reference_ops()
    own = [(work, ops) for ops in sets for work in works if getattr(ops, work.op) is not getattr(law, work.op)]
    rows = [check_kernel(work, ops, rates) for work, ops in own]
    result = {"ok": all(row.is_ok for row in rows), "rows": [row._asdict() for row in rows], "missing": missing}
    return result | {"device": torch.cuda.get_device_name(device) if rates else "cpu", "rates": None if rates is None else rates._asdict()}


def _largest_error(got: Tensor, expected: Tensor) -> float:
    """Returns the largest absolute difference; infinite where shapes differ or a number is none."""
    if got.shape != expected.shape or got.isnan().any():
        return float("inf")
    return float((got.double() - expected.double()).abs().max())


def main(argv: list[str]) -> int:
    """Prints the result; returns 1 where a kernel is wrong."""
    parser = argparse.ArgumentParser(prog="python -m kernels.verify", description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    result = verify(torch.device(parser.parse_args(argv).device))
    # JSON has no infinity.
    for row in result["rows"]:
        row["max_error"] = row["max_error"] if row["max_error"] != float("inf") else None
    print(json.dumps(result), flush=True)
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
