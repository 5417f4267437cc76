"""`python -m engine.bench kernels`: one process checks every kernel against its reference; a failure is one sentence."""

import json
import subprocess

import pytest
import torch

from engine.bench.__main__ import main
from engine.errors import BackendUnavailable
from engine.kernel_check import verify_kernels
from engine.settings import Settings

TRITON = {"sparse_prefill_attention", "selected_attention", "rotate_scatter_keys", "rotate_keys", "query_token_scores", "topk_select"}
COLUMNS = {"kernel", "shape", "dtype", "backend", "max_error", "is_ok", "time_ms", "floor_ms"}


def test_the_command_verifies_every_kernel(monkeypatch, capsys):
    monkeypatch.setenv("FUSESCOPE_DEVICE", "auto")
    assert main(["kernels"]) == 0
    table = capsys.readouterr().out.strip().splitlines()
    result = json.loads(table[-1])
    assert result["bench"] == "kernels" and result["ok"] and not result["missing"] and len(table) > len(result["rows"])
    assert all(set(row) == COLUMNS and row["is_ok"] and row["time_ms"] > 0 for row in result["rows"])
    assert {row["kernel"] for row in result["rows"] if "triton" in row["backend"]} == TRITON
    assert {row["kernel"] for row in result["rows"] if "torch" in row["backend"]} == {"selected_attention", "rotate_keys"}
    assert all((row["floor_ms"] is not None) == torch.cuda.is_available() for row in result["rows"])


def answer(monkeypatch, status, stdout="", stderr=""):
    monkeypatch.setattr("subprocess.run", lambda *args, **options: subprocess.CompletedProcess(args, status, stdout, stderr))


def test_a_wrong_kernel_is_an_error_of_one_sentence(monkeypatch, capsys):
    row = dict.fromkeys(COLUMNS, 1.0) | {"kernel": "topk_select", "backend": "triton", "is_ok": False, "max_error": None}
    row |= {"shape": "3 of 9", "dtype": "float32"}
    answer(monkeypatch, 1, json.dumps({"ok": False, "rows": [row], "missing": ["no such set"], "device": "cpu"}))
    assert main(["kernels"]) == 2
    output, errors = capsys.readouterr()
    assert "topk_select (triton)" in errors and len(errors.strip().splitlines()) == 1
    assert "not a number" in output and "no such set" in output and not json.loads(output.strip().splitlines()[-1])["ok"]


def test_a_process_that_fails_is_an_error_of_one_sentence(monkeypatch):
    answer(monkeypatch, -9, stderr="something\nKilled")
    with pytest.raises(BackendUnavailable, match=r"status -9 \(Killed\)"):
        verify_kernels(Settings(device="cpu"))
