"""Where a model runs: device, number type and CPU threads."""

import ctypes
import logging
import os
import platform
from pathlib import Path

import torch

from engine.errors import BackendUnavailable
from engine.settings import Settings

_CPU_FOLDER = Path("/sys/devices/system/cpu")
_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")

# Names and the largest value of malloc.h; mallopt takes no larger threshold.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_LARGEST_THRESHOLD = 32 * 2**20
_KEPT_BYTES, _TOP_PAD_BYTES = 256 * 2**20, 16 * 2**20

logger = logging.getLogger(__name__)


def pick_device(settings: Settings) -> torch.device:
    """Returns the device asked for; "auto" takes a GPU where there is one. Raises BackendUnavailable."""
    has_gpu = torch.cuda.is_available()
    if settings.device == "cuda" and not has_gpu:
        raise BackendUnavailable("The device 'cuda' was asked for, but torch sees no GPU here; set FUSESCOPE_DEVICE to 'auto' or 'cpu'.")
    use_gpu = has_gpu and settings.device in ("auto", "cuda")
    return torch.device("cuda", torch.cuda.current_device()) if use_gpu else torch.device("cpu")


def pick_dtype(device: torch.device) -> torch.dtype:
    """Returns bfloat16 on a GPU and float32 on a CPU, where bfloat16 attention is several times slower."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def set_threads(settings: Settings) -> int:
    """Gives torch the threads asked for, or one per physical core this process may use, and returns their number."""
    num_threads = settings.num_threads or count_cores()
    if torch.get_num_threads() != num_threads:
        torch.set_num_threads(num_threads)
        logger.info("torch computes with %d threads", num_threads)
    return num_threads


def keep_freed_memory() -> None:
    """Tells glibc to keep what tensors free for the next ones instead of giving it back to the kernel; elsewhere does nothing.

    Every layer allocates and frees tensors of megabytes; fetched from the kernel anew, page by page, they cost up to a third
    of a short prefill. At most `_KEPT_BYTES` of freed memory are held.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    for option, value in ((_M_MMAP_THRESHOLD, _LARGEST_THRESHOLD), (_M_TRIM_THRESHOLD, _KEPT_BYTES), (_M_TOP_PAD, _TOP_PAD_BYTES)):
        if not libc.mallopt(option, value):
            logger.info("glibc refused the memory setting %d", option)


def count_cores() -> int:
    """Returns the physical cores within this process's affinity and its control group's quota, at least 1."""
    logical = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = {_siblings(cpu) for cpu in logical}
    quota = _cpu_quota()
    return max(1, len(cores) if quota is None else min(len(cores), int(quota)))


def _siblings(cpu: int) -> str:
    """Returns one text for all hardware threads of a core: the kernel's list of them, or the number itself where there is none."""
    try:
        return (_CPU_FOLDER / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def _cpu_quota() -> float | None:
    """Returns the CPUs a container may use at once, or None where it is not limited or not known."""
    try:
        quota, period = _QUOTA_FILE.read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)
