"""The public endpoint `run`: one question, the numbers as JSON."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from engine.errors import EngineError
from engine.types import Run
from viz.panels.contract import SessionLike
from viz.panels.request_form import FusionForm, parse_form
from viz.panels.tables import saved_seconds
from viz.panels.verdict import num_recomputed, provenance_line, verdict


def summary(run: Run) -> dict[str, Any]:
    """Returns the numbers of a run as JSON-able data."""
    return {
        "mode": run.provenance.mode,
        "provenance": provenance_line(run),
        "question": run.question,
        "verdict": verdict(run),
        "num_doc_tokens": run.num_doc_tokens,
        "methods": {
            m.method: {
                "answer": m.answer,
                "ttft_s": m.ttft_s,
                "ttft_repeats_s": list(m.ttft_repeats_s),
                "saved_s": saved_seconds(run, m),
                "num_recomputed": num_recomputed(run, m),
                "loaded_bytes": m.loaded_bytes,
                "rouge_l": m.quality.rouge_l,
                "kl_to_full": m.quality.kl_to_full,
            }
            for m in run.methods
        },
    }


def make_run(session: SessionLike) -> Callable[[str, str, float, str], dict[str, Any]]:
    """Returns the endpoint's function for one session."""

    def run(scenario: str, question: str, ratio: float = 0.3, methods: str = "full,reuse,qcfuse") -> dict[str, Any]:
        """Answers a question over a scenario's chunks with several KV-reuse methods and returns times and quality.

        Args:
            scenario: name of a bundled scenario.
            question: one of its questions, or any other.
            ratio: share of the document tokens to recompute, 0 to 1.
            methods: names separated by commas.
        """
        names = [name.strip() for name in methods.split(",")]
        try:
            form = FusionForm(question, None, ratio, names, "system", 32, 0.0, 0, 1)
            job = parse_form(form, session.scenario(scenario), session.method_names())
            *_, last = session.stream(job.request, job.methods)
        except EngineError as error:
            raise gr.Error(str(error), print_exception=False) from error
        assert isinstance(last, Run), "the last item of a stream is its run"
        return summary(last)

    return run
