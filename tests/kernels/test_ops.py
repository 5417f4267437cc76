"""The sets of operations: which is chosen where, and what an explicit choice that cannot be had says."""

import logging
from dataclasses import fields, replace

import pytest
import torch
from kernel_samples import HAS_GPU

from kernels import reference, torch_ops
from kernels.ops import KernelOps, KernelsUnavailable, load_ops, reference_ops
from kernels.verify import TOLERANCE, check_kernel
from kernels.workload import SMALL, workloads

DEVICE = "cuda" if HAS_GPU else "cpu"


def test_triton_has_its_own_version_of_all_but_two():
    ops = load_ops("triton", DEVICE)
    shared = {field.name for field in fields(KernelOps) if getattr(ops, field.name) is getattr(reference, field.name, None)}
    assert shared == {"weighted_attention", "rank_tokens"}
    assert ops.name.startswith("triton ") and ("interpreted" in ops.name) is not HAS_GPU


@pytest.mark.parametrize("kind", ["torch", "triton"])
@pytest.mark.parametrize("index", range(6))
def test_every_operation_of_a_set_passes_the_check_of_the_command(device, kind, index):
    work = workloads(SMALL, torch.float32, device)[index]
    check = check_kernel(work, load_ops(kind, DEVICE), None)
    assert check.is_ok and check.max_error < TOLERANCE[torch.float32] and check.time_ms > 0


@pytest.mark.parametrize("index", range(6))
def test_the_check_finds_a_wrong_result(device, index):
    work = workloads(SMALL, torch.float32, device)[index]

    def spoil(*args):
        result = getattr(reference, work.op)(*args)
        for tensor in work.outputs or (result if isinstance(result, tuple) else (result,)):
            tensor[-1] = float("nan") if tensor.is_floating_point() else 0
        return result

    check = check_kernel(work, replace(reference_ops(), **{work.op: spoil}), None)
    assert not check.is_ok


def test_the_check_finds_an_output_that_is_never_written(device):
    for work in workloads(SMALL, torch.float32, device):
        if work.outputs:
            assert not check_kernel(work, replace(reference_ops(), **{work.op: lambda *args: None}), None).is_ok


def test_without_a_gpu_the_engine_stays_on_torch(caplog):
    caplog.set_level(logging.INFO)
    ops = load_ops("auto", "cpu")
    assert ops.name.startswith("torch") and ops.selected_attention is torch_ops.selected_attention
    assert ops.rotate_keys is torch_ops.rotate_keys and ops.token_scores is reference.token_scores
    assert "kernels: torch" in caplog.text


def test_an_explicit_choice_that_cannot_be_had_says_why(monkeypatch):
    monkeypatch.setattr("kernels.device_code.is_interpreted", lambda: False)
    with pytest.raises(KernelsUnavailable, match="they need an NVIDIA GPU and the device is 'cpu'; use FUSESCOPE_KERNELS=torch"):
        load_ops("triton", "cpu")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(KernelsUnavailable, match=r"capability 8\.0 and this one has 7\.5"):
        load_ops("triton", "cuda")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(KernelsUnavailable, match="triton is not installed"):
        load_ops("triton", "cuda")
    with pytest.raises(KernelsUnavailable, match="'opencl' is not known; known ones are auto, torch, triton and reference"):
        load_ops("opencl")


def test_auto_on_a_gpu_takes_triton_or_says_why_not(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("kernels.device_code.is_interpreted", lambda: True)
    assert load_ops("auto", "cuda").name == "torch" and "TRITON_INTERPRET is set" in caplog.text
    monkeypatch.setattr("kernels.device_code.is_interpreted", lambda: False)
    monkeypatch.setattr("kernels.triton_ops.set_name", lambda: "triton, sm_90")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert load_ops("auto", "cuda").name == "triton, sm_90" and "kernels: triton, sm_90 on cuda" in caplog.text
