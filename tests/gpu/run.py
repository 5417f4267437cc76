"""Everything that needs a GPU, in one go: `python tests/gpu/run.py [--out FILE] [--budget-s 480]`.

First the kernel tests, not interpreted, and whole requests: Triton's one pass against torch's two steps, a batch against each alone,
decoding by CUDA graphs. Nothing is timed where one fails. Then every kernel against its floor, at the bandwidth and matrix rate measured
here; attention also with other tiles and against other ways to it; then the time to the first token of whole requests on a model of
Llama-3.1-8B's shape. Ends with one JSON line, and writes what it has to FILE after every part. Needs torch, triton, numpy and
pytest, for whole requests msgspec and safetensors too, a C compiler as triton does, and no network.

`--rehearse` goes the same way on a CPU with tiny sizes and interpreted kernels; its times mean nothing.
"""

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Shares of the budget after which the parts of the script may no longer begin; the tests have until the first.
TESTS_UNTIL, KERNELS_UNTIL, TTFT_UNTIL = 0.4, 0.75, 0.85

# Compiles for other GPUs, runs on a CPU alone, or needs packages that a bare machine lacks.
LEFT_OUT = ("test_compile", "test_torch_ops", "test_bench_kernels", "test_engine_on_triton", "test_vector_math")


class Clock:
    """What is left of the time this script may take."""

    def __init__(self, budget_s: float) -> None:
        self._start, self._budget_s = time.monotonic(), budget_s

    def elapsed_s(self) -> float:
        return time.monotonic() - self._start

    def is_before(self, share: float) -> bool:
        return self.elapsed_s() < share * self._budget_s

    def left_s(self, share: float) -> float:
        return max(1.0, share * self._budget_s - self.elapsed_s())


def run_tests(clock: Clock) -> dict[str, object]:
    """Runs the kernel tests on the GPU, in as many processes as there are cores where pytest can, and returns how they went."""
    command = [sys.executable, "-m", "pytest", "tests/kernels", "-q", "-x", "-p", "no:cacheprovider"]
    for name in LEFT_OUT:
        command += ["--ignore", f"tests/kernels/{name}.py"]
    if importlib.util.find_spec("xdist"):
        command += ["-n", str(min(8, len(os.sched_getaffinity(0))))]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=clock.left_s(TESTS_UNTIL), check=False)
    except subprocess.TimeoutExpired:
        return {"ok": False, "summary": f"not done within {TESTS_UNTIL:.0%} of the time"}
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no output"]
    if done.returncode:
        print("\n".join(lines[-40:]), file=sys.stderr)
    return {"ok": done.returncode == 0, "summary": lines[-1].strip("= ")}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the JSON here")
    parser.add_argument("--budget-s", type=float, default=480.0)
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes on a CPU, kernels interpreted")
    args = parser.parse_args(argv)
    # Before triton is imported by anything below.
    os.environ["TRITON_INTERPRET"] = "1" if args.rehearse else "0"
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    import torch

    if not args.rehearse and not torch.cuda.is_available():
        print("This script needs a GPU and torch sees none; --rehearse runs it on a CPU.", file=sys.stderr)
        return 2
    clock = Clock(args.budget_s)
    result: dict[str, object] = {"bench": "gpu", "ok": False, "rehearsal": args.rehearse, **machine()}
    result["tests"] = {"ok": True, "summary": "left out of a rehearsal"} if args.rehearse else run_tests(clock)
    if result["tests"]["ok"]:
        import sections

        plan = sections.REHEARSAL if args.rehearse else sections.FULL
        result |= sections.check(plan)
        if all(row["is_ok"] for row in result["requests"]):
            for part in sections.run(plan, clock.is_before, KERNELS_UNTIL, TTFT_UNTIL):
                result |= part
                write(args.out, result, clock)
            result["ok"] = all(row["is_ok"] for row in result["kernels"])
    print(json.dumps(write(args.out, result, clock), allow_nan=False), flush=True)
    return 0 if result["ok"] else 1


def write(path: Path | None, result: dict[str, object], clock: Clock) -> dict[str, object]:
    """Returns the result so far as JSON can hold it, written to a file where one was asked for."""
    plain = finite(result | {"elapsed_s": round(clock.elapsed_s(), 1)})
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(plain, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return plain


def finite(value: object) -> object:
    """Returns a value with None for every number that is none or has no end."""
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def machine() -> dict[str, object]:
    """Returns what runs this."""
    import torch
    import triton

    has_gpu = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if has_gpu else "cpu",
        "capability": list(torch.cuda.get_device_capability()) if has_gpu else None,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
