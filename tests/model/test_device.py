import os

import pytest
import torch

from engine.errors import BackendUnavailable
from engine.model import device as module
from engine.model.device import count_cores, pick_device, pick_dtype, set_threads
from engine.settings import Settings


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 4 cores with two hardware threads each, CPU i and i + 4 being one core."""
    for cpu in range(8):
        folder = tmp_path / f"cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(module, "_CPU_FOLDER", tmp_path)
    monkeypatch.setattr(module, "_QUOTA_FILE", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


def test_hardware_threads_of_one_core_count_once(machine) -> None:
    assert count_cores() == 4


def test_affinity_bounds_the_cores(machine, monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5})
    assert count_cores() == 2


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 4), ("250000 100000", 2), ("50000 100000", 1), ("nonsense", 4)])
def test_the_control_groups_quota_bounds_the_cores(machine, quota: str, cores: int) -> None:
    (machine / "cpu.max").write_text(quota + "\n")
    assert count_cores() == cores


def test_threads_asked_for_win(machine) -> None:
    before = torch.get_num_threads()
    try:
        assert set_threads(Settings(num_threads=1)) == torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_auto_takes_a_gpu_only_where_there_is_one(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device(Settings()).type == "cpu"
    with pytest.raises(BackendUnavailable, match=r"'cuda'.*FUSESCOPE_DEVICE"):
        pick_device(Settings(device="cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    assert pick_device(Settings()) == torch.device("cuda", 0)
    assert pick_device(Settings(device="cpu")).type == "cpu"


def test_number_type_follows_the_device() -> None:
    assert pick_dtype(torch.device("cpu")) is torch.float32
    assert pick_dtype(torch.device("cuda")) is torch.bfloat16
