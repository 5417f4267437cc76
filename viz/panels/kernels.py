"""Part of the Layers tab: every kernel against its float32 reference, on this machine, at the press of a button."""

from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.kernel_check import KernelReport
from viz.panels.contract import SessionLike
from viz.panels.fuse_view import status
from viz.panels.live import failed
from viz.panels.parts import heading
from viz.panels.players import pack, player

QUIET = {"show_progress": "hidden", "api_visibility": "private"}
ENGINE = {"concurrency_id": "engine", "concurrency_limit": 16}
COLUMNS = ("Kernel", "Shape", "Type", "Version", "Largest difference", "Time", "Floor")
SAID = """
What runs fast must give what runs plainly. Each kernel is run once more beside a float32 reference without cleverness, on outputs that
begin full of NaN. Without an NVIDIA GPU the Triton kernels run in Triton's interpreter, in a process of their own, where their times
mean nothing.
"""


def build_kernels(session: SessionLike) -> None:
    """Builds the part. Call inside a gr.Tab."""
    with gr.Column(elem_classes="fs-panel"):
        heading("Kernels")
        gr.Markdown(SAID)
        button = gr.Button("Verify kernels", elem_id="kernels-verify", size="md")
        line = player("status", "kernels-status", "Status")
        table = player("table", "kernels-table", "Kernels")

    def begin() -> tuple[gr.Button, dict[str, str]]:
        return gr.Button(interactive=False), pack(status("busy", "Running every kernel beside its reference…"))

    def verify() -> tuple[dict[str, str], dict[str, str] | None]:
        try:
            report = session.verify_kernels()
        except EngineError as error:
            return failed(error), None
        return pack(status("done" if report.ok else "error", verdict(report))), pack(report_table(report))

    begun = button.click(begin, None, [button, line], queue=False, **QUIET)
    begun.then(verify, None, [line, table], **QUIET, **ENGINE).then(lambda: gr.Button(interactive=True), None, button, queue=False, **QUIET)


def verdict(report: KernelReport) -> str:
    """Returns what came of the check in one or two sentences."""
    wrong = sorted({f"{row.kernel} ({row.backend})" for row in report.rows if not row.is_ok})
    worst = max((row.max_error for row in report.rows if row.max_error is not None), default=0.0)
    said = f"These differ from their reference: {', '.join(wrong)}." if wrong else f"All {len(report.rows)} agree, to {worst:.1e} at most."
    return " ".join((said, *report.missing))


def report_table(report: KernelReport) -> dict[str, Any]:
    """Returns the rows as plain data for the table."""
    rows = [
        [
            row.kernel.replace("_", " "),
            row.shape,
            row.dtype,
            row.backend,
            "not a number" if row.max_error is None else f"{row.max_error:.1e}",
            f"{row.time_ms:.2f} ms" if "interpreted" not in row.backend else "–",
            "–" if row.floor_ms is None else f"{row.floor_ms:.3f} ms",
        ]
        for row in report.rows
    ]
    note = "Floor: the time that the kernel's bytes or products take at the bandwidth and the matrix rate measured on this GPU."
    return {
        "caption": f"Measured now on {report.device}",
        "columns": list(COLUMNS),
        "rows": rows,
        "reason": "Nothing to check.",
        "note": note,
    }
