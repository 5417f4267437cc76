"""Every kernel against its float32 reference, in a process of its own; the real ones on a GPU, interpreted ones without."""

import argparse

import msgspec

from engine.bench.report import print_json, print_table
from engine.errors import BackendUnavailable
from engine.kernel_check import KernelRow, verify_kernels
from engine.settings import Settings


def main(argv: list[str]) -> None:
    """Prints the result of `verify_kernels`. Raises EngineError, also where a kernel is wrong."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print only the JSON line")
    args = parser.parse_args(argv)
    report = verify_kernels(Settings.from_env())
    if not args.json:
        print_table(("kernel", "shape", "type", "backend", "max |diff|", "time ms", "floor ms"), [_cells(row) for row in report.rows])
        for reason in report.missing:
            print(reason)
    print_json({"bench": "kernels", **msgspec.to_builtins(report)})
    if not report.ok:
        wrong = sorted({f"{row.kernel} ({row.backend})" for row in report.rows if not row.is_ok})
        raise BackendUnavailable(f"These kernels differ from their reference: {', '.join(wrong)}; use FUSESCOPE_KERNELS=torch.")


def _cells(row: KernelRow) -> tuple[str, ...]:
    error = "not a number" if row.max_error is None else f"{row.max_error:.1e}"
    floor = "–" if row.floor_ms is None else f"{row.floor_ms:.3f}"
    return (row.kernel, row.shape, row.dtype, row.backend, error, f"{row.time_ms:.3f}", floor)
