"""The GPU script goes all its way on a CPU, with tiny sizes and interpreted kernels, and refuses to start without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).with_name("run.py")


def run(*args):
    env = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run([sys.executable, "-W", "ignore", str(SCRIPT), *args], env=env, capture_output=True, text=True, check=False)


def test_a_rehearsal_ends_with_every_part(tmp_path):
    done = run("--rehearse", "--out", str(tmp_path / "gpu.json"))
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    assert json.loads((tmp_path / "gpu.json").read_text()) == result
    assert result["ok"] and result["rehearsal"] and not result["left_out"] and result["requests_left_out"] is None
    checks = {row["check"]: row for row in result["requests"]}
    assert set(checks) == {"reuse in one pass", "qcfuse in one pass", "a batch of 2", "decode by repeated steps"}
    assert all(row["is_ok"] for row in checks.values()) and checks["reuse in one pass"]["layers_merged"] == 2
    assert len({row["kernel"] for row in result["kernels"]}) == 6 and all(row["is_ok"] for row in result["kernels"])
    agreeing = {row["name"] for row in result["attention"] if row.get("agrees")}
    assert {"torch with a mask", "flex_attention"} <= agreeing
    for backend in {row["backend"] for row in result["ttft"]}:
        rows = {row["method"]: row for row in result["ttft"] if row["backend"] == backend}
        assert set(rows) == {"full", "cacheblend", "qcfuse"} and rows["full"]["speedup"] == 1.0
        assert rows["qcfuse"]["num_rows"] < rows["full"]["num_rows"] and rows["qcfuse"]["loaded_bytes"] > 0
    assert len({row["backend"] for row in result["ttft"]}) == 2 and all(row["same_text"] for row in result["ttft"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    done = run()
    assert done.returncode == 2 and "needs a GPU" in done.stderr
