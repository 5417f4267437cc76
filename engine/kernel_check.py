"""Checks the kernels of this machine against their float32 reference, in a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.errors import BackendUnavailable
from engine.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
# Compiling every kernel on a GPU takes a minute, interpreting small ones on a CPU a few seconds.
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel of one set at one size. max_error: None where it is no number; floor_ms: on a GPU alone."""

    kernel: str
    shape: str
    dtype: str
    backend: str
    max_error: float | None
    is_ok: bool
    time_ms: float
    floor_ms: float | None


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What came of a check. missing: one sentence on each set that cannot be had; rates: of the GPU, by name."""

    ok: bool
    rows: tuple[KernelRow, ...]
    missing: tuple[str, ...]
    device: str
    rates: dict[str, float] | None = None


def verify_kernels(settings: Settings) -> KernelReport:
    """Returns how far every kernel of every set that can be had here is from its reference.

    One process does the work: Triton's interpreter must be chosen before triton is imported and does not bear threads.
    Raises BackendUnavailable where that process fails.
    """
    from engine.model.device import pick_device

    device = pick_device(settings).type
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    if device == "cpu":
        env["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "kernels.verify", "--device", device]
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise BackendUnavailable(f"The kernels were not verified within {TIMEOUT_S} s; try again when the machine is less busy.") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode not in (0, 1) or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackendUnavailable(f"Verifying the kernels ended with status {done.returncode} ({last}); run python -m kernels.verify.")
    return msgspec.json.decode(lines[-1], type=KernelReport)
