"""Every kernel compiles to machine code for GPUs that are not here, fits their shared memory, and spills little."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = {"attend_kernel", "combine_kernel", "scatter_kernel", "lse_kernel", "sum_kernel", "norm_kernel", "select_kernel"}
MAX_SPILL_BYTES = 64


@pytest.fixture(scope="module")
def compiled(pytestconfig, tmp_path_factory):
    """Returns what the compiler says of every kernel on every architecture, compiled in a process without the interpreter.

    Triton keeps in pytest's cache what it compiled, by the kernels' sources, the options and the versions of all compilers; a kernel is
    compiled again as soon as any of them is another.
    """
    cache = getattr(pytestconfig, "cache", None)
    folder = cache.mkdir("triton") if cache else tmp_path_factory.mktemp("triton")
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    env |= {"TRITON_CACHE_DIR": str(folder), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("compile_kernels.py"))]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("arch", [80, 86, 90, 120])
def test_every_kernel_compiles_and_fits(compiled, arch):
    found = [row for row in compiled if row["arch"] == arch]
    assert {row["kernel"] for row in found} == KERNELS
    for row in found:
        assert 0 < row["registers"] <= 255, row
        assert row["shared_bytes"] <= row["shared_limit_bytes"], row
        assert row["spill_bytes"] <= MAX_SPILL_BYTES, row
